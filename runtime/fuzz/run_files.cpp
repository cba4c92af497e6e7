// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target on files, such as its seeds, where libFuzzer is not available. It works with
// the sanitizers of any compiler.
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
    // The input has memory of its exact size, so that sanitizers find reads beyond its end.
    const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}
