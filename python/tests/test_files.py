"""Readers of files, transforms and data sets, beside NumPy and what the files say."""

import gzip
import struct
import zlib

import numpy as np
import pytest

import pantala as pn


def arrays():
    rng = np.random.default_rng(0)
    return {
        "f4": rng.normal(size=(3, 4)).astype(np.float32), "f8": rng.normal(size=(2, 3)),
        "i4": rng.integers(-9, 9, (5,), dtype=np.int32), "i8": rng.integers(-9, 9, (2, 2)),
        "u1": rng.integers(0, 255, (4, 4), dtype=np.uint8),
    }


@pytest.mark.parametrize("kind", arrays())
def test_npy(kind, tmp_path):
    array = arrays()[kind]
    np.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(pn.data.read_npy(tmp_path / "a.npy"), array)
    assert pn.data.read_npy(tmp_path / "a.npy").dtype == array.dtype
    pn.data.write_npy(tmp_path / "b.npy", array[..., ::2])
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), array[..., ::2])


def test_npz(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", **arrays())
    assert sorted(pn.data.npz_names(tmp_path / "a.npz")) == sorted(arrays())
    for name, array in arrays().items():
        np.testing.assert_array_equal(pn.data.read_npz(tmp_path / "a.npz", name), array)
    with pytest.raises(pn.TypeError, match="f4"):
        pn.data.read_npz(tmp_path / "a.npz", "f5")


def test_safetensors(tmp_path):
    pn.Weights(arrays()).save(tmp_path / "a.safetensors")
    assert sorted(pn.data.safetensors_names(tmp_path / "a.safetensors")) == sorted(arrays())
    np.testing.assert_array_equal(pn.data.read_safetensors(tmp_path / "a.safetensors", "f8"), arrays()["f8"])


def write_idx(path, array):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wb") as file:
        file.write(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape) + array.tobytes())


def test_idx(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (6, 5, 5), dtype=np.uint8)
    labels = np.arange(6, dtype=np.uint8)
    for part in ("train", "t10k"):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", images)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", labels)
    np.testing.assert_array_equal(pn.data.read_idx(tmp_path / "train-images-idx3-ubyte.gz"), images)
    train, test = pn.data.read_idx_folder(tmp_path)
    np.testing.assert_array_equal(train.data, images[:, None])
    assert test.labels.tolist() == labels.tolist() and train.item_shape == (1, 5, 5)
    (tmp_path / "damaged").write_bytes(b"\0\0\x08\x03\0\0\0\x05")
    with pytest.raises(pn.ParseError, match="damaged"):
        pn.data.read_idx(tmp_path / "damaged")


TABLE = "length,colour,kind\n1.5,red,rose\n2,white,lily\n,red,rose\n3,blue,lily\n"


def test_tables(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(TABLE)
    with pytest.raises(pn.ParseError, match="a.csv"):
        pn.data.read_csv(file)
    table = pn.data.read_csv(file, missing="drop", keep_rows=True)
    assert table.classes == ["rose", "lily"] and table.labels.tolist() == [0, 1, 1]
    assert table.columns == [pn.data.Column("length", []), pn.data.Column("colour", ["red", "white", "blue"])]
    assert table.rows == pn.data.TableRows([0, 1, 3], ["1.5", "red", "2", "white", "3", "blue"], ["rose", "lily", "lily"])
    kept = pn.data.read_csv(file, missing="keep", one_hot=["colour"], label="kind").data
    assert np.isnan(kept[2, 0]) and kept[:, 1:].sum(1).tolist() == [1, 1, 1, 1]


def test_tables_like_others(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    columns = pn.data.read_csv(tmp_path / "a.csv", missing="drop").columns
    (tmp_path / "b.csv").write_text("length;colour\n7;blue\n")
    with pytest.raises(pn.TypeError):
        pn.data.read_csv(tmp_path / "b.csv", separator="auto", like=columns)
    other = pn.data.read_csv(tmp_path / "b.csv", separator="auto", like=columns, label_may_lack=True)
    assert other.data.tolist() == [[7, 2]] and other.labels.tolist() == [0]
    assert pn.data.read_csv(tmp_path / "b.csv", separator="auto", label="0").data.tolist() == [[0]]


def png(pixels):
    """Of bytes [height, width, 3]."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    made = {}
    for part in ("train", "val"):
        for kind in ("cat", "dog"):
            folder = tmp_path / part / kind
            folder.mkdir(parents=True)
            for k in range(2):
                made[part, kind, k] = rng.integers(0, 255, (4, 4, 3), dtype=np.uint8)
                (folder / f"{k}.png").write_bytes(png(made[part, kind, k]))
    return tmp_path, made


def test_images(pictures):
    folder, made = pictures
    picture = folder / "train" / "dog" / "1.png"
    np.testing.assert_array_equal(pn.data.read_image(picture), made["train", "dog", 1].transpose(2, 0, 1))
    assert pn.data.read_image(picture, channels=1).shape == (1, 4, 4)
    sets = pn.data.read_image_sets(folder)
    assert sets.train.classes == ["cat", "dog"] and len(sets.test) == 4
    alone = pn.data.read_image_sets(folder / "val")
    assert alone.test is None and len(alone.train) == 4
    turned = pn.data.read_image_folder(folder / "train", classes=["dog", "cat"])
    assert turned.classes == ["dog", "cat"] and sorted(turned.labels.tolist()) == [0, 0, 1, 1]
    with pytest.raises(pn.TypeError, match="dog"):
        pn.data.read_image_folder(folder / "train", classes=["cat"])
    same = [pn.data.CenterCrop(4, 4)]
    batch, labels = next(iter(pn.data.loader(sets.train, 4, shuffle=False, transforms=same)))
    np.testing.assert_array_equal(batch[3], made["train", "dog", 1].transpose(2, 0, 1))
    assert labels.tolist() == [0, 0, 1, 1]
    assert len(pn.data.read_images(folder)) == 8 and len(pn.data.read_images([picture, str(picture)])) == 2


def test_tokens(tmp_path):
    numbers = np.arange(21, dtype="<u2")
    (tmp_path / "tokens").write_bytes(numbers.tobytes())
    items = pn.data.read_tokens(tmp_path / "tokens", sequence=4)
    batch, labels = next(iter(pn.data.loader(items, 5, shuffle=False)))
    assert batch.ravel().tolist() == list(range(20)) and labels.ravel().tolist() == list(range(1, 21))
    assert len(pn.data.read_tokens(tmp_path / "tokens", sequence=4, stride=2)) > len(items)
    train, test = pn.data.read_token_parts(tmp_path / "tokens", 0.3, sequence=2)
    seen = {int(t) for part in (train, test) for x, y in pn.data.loader(part, 1) for t in (*x[0], *y[0])}
    assert len(train) > len(test) > 0 and seen <= set(range(21))
    with pytest.raises(pn.ValueError, match="vocabulary|20"):
        pn.data.read_tokens(tmp_path / "tokens", sequence=4, vocabulary=20)
    with pytest.raises(pn.TypeError, match="u8, u16 or i32"):
        pn.data.read_tokens(tmp_path / "tokens", type="u32")


# --- transforms


def transformed(items, *transforms, labels=None):
    data = pn.data.dataset(items, np.zeros(len(items), np.int64) if labels is None else labels)
    return next(iter(pn.data.loader(data, len(items), shuffle=False, transforms=transforms)))


def test_transforms_that_draw_nothing():
    rng = np.random.default_rng(0)
    items = rng.integers(0, 255, (3, 3, 6, 6), dtype=np.uint8)
    np.testing.assert_allclose(transformed(items, pn.data.Scale())[0], items / np.float32(255), rtol=1e-6)
    normal = pn.data.Normalize([1, 2, 3], [4, 5, 6])
    expected = (items - np.array([1, 2, 3]).reshape(3, 1, 1)) / np.array([4, 5, 6]).reshape(3, 1, 1)
    np.testing.assert_allclose(transformed(items, normal)[0], expected, rtol=1e-5)
    assert transformed(items, pn.data.Reshape([-1, 9]))[0].shape == (3, 12, 9)
    np.testing.assert_array_equal(transformed(items, pn.data.Pad(2))[0], np.pad(items, ((0, 0), (0, 0), (2, 2), (2, 2))))
    np.testing.assert_array_equal(transformed(items, pn.data.CenterCrop(4, 2))[0], items[:, :, 1:5, 2:4])
    assert transformed(items, pn.data.Resize(3))[0].shape == (3, 3, 3, 3)
    gray = transformed(items, pn.data.Channels(1))[0]
    assert gray.shape == (3, 1, 6, 6) and transformed(gray, pn.data.Channels(3))[0].shape == items.shape
    one_hot = transformed(items, pn.data.OneHot(4), labels=np.array([1, 3, 0]))[1]
    np.testing.assert_array_equal(one_hot, np.eye(4, dtype=np.float32)[[1, 3, 0]])


@pytest.mark.parametrize("transform, shape", [
    (pn.data.RandomCrop(4, 4), (4, 4)), (pn.data.RandomFlip(), (6, 6)), (pn.data.RandomResizedCrop(5, 3), (5, 3)),
    (pn.data.ColorJitter(0.4, 0.4, 0.4, 0.1), (6, 6)), (pn.data.RandomRotation(30), (6, 6)),
])
def test_transforms_that_draw(transform, shape):
    items = np.random.default_rng(0).integers(0, 255, (8, 3, 6, 6), dtype=np.uint8)
    data = pn.data.dataset(items, np.zeros(8, np.int64))

    def epochs(threads):
        loader = pn.data.loader(data, 8, shuffle=False, seed=3, threads=threads, transforms=[transform])
        return [next(iter(loader))[0] for _ in range(2)]

    first, second = epochs(0)
    assert first.shape == (8, 3, *shape) and not np.array_equal(first, second)
    np.testing.assert_array_equal([first, second], epochs(2))


def test_transforms_that_do_not_fit():
    items = np.zeros((2, 3, 6, 6), np.uint8)
    for wrong in (pn.data.RandomCrop(9, 9), pn.data.Reshape([5, 5]), pn.data.Normalize([1, 2], [1, 2])):
        with pytest.raises(pn.TypeError):
            transformed(items, wrong)
    with pytest.raises(pn.ValueError):
        transformed(items, pn.data.OneHot(1), labels=np.array([0, 1]))


# --- data sets


def test_parts_of_a_data_set():
    data = pn.data.dataset(np.arange(10, dtype=np.float32).reshape(10, 1), np.arange(10))
    loaded = lambda part: next(iter(pn.data.loader(part, 99, shuffle=False)))[1].tolist()  # noqa: E731
    assert loaded(data.select([3, 1])) == [3, 1] and loaded(data.slice(4, 2)) == [4, 5]
    rest, part = data.split(3, seed=1)
    assert len(part) == 3 and sorted(loaded(rest) + loaded(part)) == list(range(10))
    with pytest.raises(pn.TypeError):
        data.select([10])
    with pytest.raises(pn.TypeError):
        pn.data.dataset(np.zeros((3, 2)), np.zeros(4))
