// The `pantala` command. Environment variables are read in tools/ only.
#include "tools/command.h"

int main(int argc, char** argv) { return pantala::tools::run_command(argc, argv); }
