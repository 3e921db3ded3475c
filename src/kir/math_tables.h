// Made by src/kir/fit_math.py: minimax polynomials, lowest power first, and the bits of 2/pi.
#pragma once

#include <cstdint>

namespace pantala::kir::math::tables {

// exp(r) = 1 + r + r^2 p(r), |r| <= ln(2)/2; error 1.4e-08, 2^-26.0
inline constexpr double kExpF32[] = {0x1.0000000000000p-1, 0x1.5554aa0000000p-3,
                                     0x1.5554d40000000p-5, 0x1.122cc60000000p-7,
                                     0x1.6d650e0000000p-10};

// exp(r) = 1 + r + r^2 p(r), |r| <= ln(2)/2; error 1.4e-18, 2^-59.3
inline constexpr double kExpF64[] = {
    0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.555555555555bp-5,  0x1.111111110f482p-7,
    0x1.6c16c16c14139p-10, 0x1.a01a01b0dc53ap-13, 0x1.a01a01b1ac6f5p-16, 0x1.71ddf5aa0e9e6p-19,
    0x1.27e4c393e2473p-22, 0x1.af63bef8c263fp-26, 0x1.1f988e0ac7cc1p-29};

// log((1+s)/(1-s)) = 2s + s^3 p(s^2), sqrt(1/2) <= (1+s)/(1-s) <= sqrt(2); error 1.6e-09, 2^-29.2
inline constexpr double kLogF32[] = {0x1.55557a0000000p-1, 0x1.995ece0000000p-2,
                                     0x1.31e1f40000000p-2};

// log((1+s)/(1-s)) = 2s + s^3 p(s^2), sqrt(1/2) <= (1+s)/(1-s) <= sqrt(2); error 3.0e-18, 2^-58.2
inline constexpr double kLogF64[] = {
    0x1.5555555555593p-1, 0x1.999999997fb0ep-2, 0x1.24924942193d4p-2, 0x1.c71c51e6d7cf2p-3,
    0x1.74664660bd754p-3, 0x1.39a0f042b52b0p-3, 0x1.2f0dba6e9a528p-3};

// atanh(s) = s + s^3/3 + s^5 p(s^2), the same s; error 8.5e-12, 2^-36.8
inline constexpr double kAtanhF32[] = {0x1.999a000000000p-3, 0x1.24527a0000000p-3,
                                       0x1.dfa3020000000p-4};

// atanh(s) = s + s^3/3 + s^5 p(s^2), the same s; error 1.2e-20, 2^-66.2
inline constexpr double kAtanhF64[] = {
    0x1.9999999999996p-3, 0x1.249249249304bp-3, 0x1.c71c71c57dcc2p-4, 0x1.745d18338fc77p-4,
    0x1.3b136262348e9p-4, 0x1.1120c227c9f31p-4, 0x1.de31768da0e62p-5, 0x1.eb218949c6bdcp-5};

// sin(r) = r + r^3 p(r^2), |r| <= pi/4; error 4.6e-09, 2^-27.7
inline constexpr double kSinF32[] = {-0x1.5555440000000p-3, 0x1.11069e0000000p-7,
                                     -0x1.9906cc0000000p-13};

// sin(r) = r + r^3 p(r^2), |r| <= pi/4; error 5.9e-18, 2^-57.2
inline constexpr double kSinF64[] = {
    -0x1.5555555555555p-3,  0x1.1111111111109p-7,  -0x1.a01a01a0184dbp-13, 0x1.71de3a52bcac2p-19,
    -0x1.ae6451f688decp-26, 0x1.61202c443f213p-33, -0x1.aa72d365d1862p-41};

// cos(r) = 1 - r^2/2 + r^4 p(r^2), |r| <= pi/4; error 1.4e-10, 2^-32.7
inline constexpr double kCosF32[] = {0x1.5555480000000p-5, -0x1.6c0ae80000000p-10,
                                     0x1.998c2e0000000p-16};

// cos(r) = 1 - r^2/2 + r^4 p(r^2), |r| <= pi/4; error 9.7e-19, 2^-59.8
inline constexpr double kCosF64[] = {
    0x1.5555555555555p-5,  -0x1.6c16c16c16c0ep-10, 0x1.a01a01a0188bbp-16, -0x1.27e4fb75a5798p-22,
    0x1.1eed8c41c8b14p-29, -0x1.9392ca938cb19p-37, 0x1.aa94d63b2f911p-45};

// tanh(x) = x + x^3 p(x^2), |x| <= 0.55; error 1.0e-09, 2^-29.8
inline constexpr double kTanhF32[] = {-0x1.55554c0000000p-2, 0x1.110d6a0000000p-3,
                                      -0x1.b931fe0000000p-5, 0x1.59829e0000000p-6,
                                      -0x1.9c96060000000p-8};

// tanh(x) = x + x^3 p(x^2), |x| <= 0.55; error 2.5e-18, 2^-58.5
inline constexpr double kTanhF64[] = {
    -0x1.5555555555555p-2,  0x1.11111111110b4p-3,  -0x1.ba1ba1ba146bfp-5,  0x1.664f4880839a7p-6,
    -0x1.226e34f5de062p-7,  0x1.d6d3b88e43a8dp-9,  -0x1.7da17fc120903p-10, 0x1.353e48f2da6c7p-11,
    -0x1.f3956d46f89f0p-13, 0x1.8a2e497fc7ae6p-14, -0x1.14ab7005b164bp-15, 0x1.f470ea764de0fp-18};

// erf(x) = x + x p(x^2), |x| <= 0.9; error 1.6e-08, 2^-25.9
inline constexpr double kErfF32[] = {0x1.06eba60000000p-3, -0x1.8126f60000000p-2,
                                     0x1.ce1d9e0000000p-4, -0x1.b6bdba0000000p-6,
                                     0x1.4875440000000p-8, -0x1.3f55240000000p-11};

// erf(x) = x + x p(x^2), |x| <= 0.9; error 1.3e-17, 2^-56.0
inline constexpr double kErfF64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e3p-2,  0x1.ce2f21a04282ap-4,  -0x1.b82ce31273319p-6,
    0x1.565bcd0a65209p-8,  -0x1.c02db31d1b7bbp-11, 0x1.f9a30726fa77dp-14, -0x1.f4cf6b3e0fb5dp-17,
    0x1.b9b82ff5498ddp-20, -0x1.5d8948b572320p-23, 0x1.e2ce8f05babdap-27, -0x1.d2f56791e3924p-31};

// log(erfc(t)) = p(t - 1), 0.9 <= t <= 4 (f64: 6); error 8.0e-09, 2^-26.9
inline constexpr double kErfcF32[] = {
    -0x1.d97fc00000000p+0, -0x1.51c9b20000000p+1,  -0x1.afaaf40000000p-1, -0x1.54764e0000000p-5,
    0x1.4641f00000000p-7,  -0x1.e2e6ec0000000p-10, 0x1.7ad17c0000000p-13};

// log(erfc(t)) = p(t - 1), 0.9 <= t <= 4 (f64: 6); error 7.5e-18, 2^-56.9
inline constexpr double kErfcF64[] = {
    -0x1.d97fbf27aa2a1p+0,  -0x1.51c9b0006c23dp+1,  -0x1.afabc11a28fcbp-1,  -0x1.5477f09caa11fp-5,
    0x1.48c9d40d58d2cp-7,   -0x1.033f69ab4d12fp-9,  0x1.f1b4b2bd3622fp-13,  0x1.b8c199e8b2e9bp-16,
    -0x1.c768279b6be9bp-16, 0x1.41a4d3b31f276p-17,  -0x1.10e113a1a42a2p-19, 0x1.020d899f5037ep-23,
    0x1.e094e213cdce5p-24,  -0x1.f869d06b86663p-25, 0x1.2701c37f2a7d6p-26,  -0x1.d39d9b16361e2p-29,
    0x1.f2d139b0bbc40p-32,  -0x1.44a46ff5d657bp-35, 0x1.85bfc32899c9ap-40};

// Words of 2/pi, the first one before the binary point.
inline constexpr std::int64_t kTwoOverPiF32[] = {0,          -1560706194, 1313084713, -64530479,
                                                 -181084736, -614296167,  1011060801, -28220501};
inline constexpr std::int64_t kTwoOverPiF64[] = {0,
                                                 -6703182060581546711,
                                                 -277156292786332224,
                                                 -2638381946312093631,
                                                 -121206125134887583,
                                                 -5249950069107600672,
                                                 452944820249399836,
                                                 -135693905287338178,
                                                 -1692731182770600828,
                                                 -1613291254968254911,
                                                 4148332274289687028,
                                                 -7168499653074671557,
                                                 2303758334597371919,
                                                 -1211730484530615009,
                                                 7869616827067468215,
                                                 5712322887342352941,
                                                 8441921394348257659,
                                                 4397547296490951402,
                                                 7780917995555872008,
                                                 6197850593633725355};

}  // namespace pantala::kir::math::tables
