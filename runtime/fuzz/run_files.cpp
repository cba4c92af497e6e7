// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target with files, where libFuzzer is not: its seeds under sanitizers of any
// compiler.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** files) {
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (int i = 1; i < count; ++i) {
    std::fprintf(stderr, "%s\n", files[i]);
    std::ifstream file(files[i], std::ios::binary);
    if (!file) return 2;
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    // In a piece of memory of its own size: what reads beyond it is found.
    const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}
