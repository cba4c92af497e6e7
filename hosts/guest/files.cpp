// SPDX-License-Identifier: Apache-2.0
//
// Makes the machine's files look equal to a guest on every boot. hostfs shows the inode numbers and
// the order of directories of the machine's file system, which differ from run to run. Programs
// depend on both: cp(1) copies in the order of inode numbers, find(1) prints in the order of the
// directory.
//
// This library, preloaded into the guest kernel, numbers files in the order of their first use, and
// returns the entries of a directory in an order that follows from their names. Offsets in a
// directory (d_off) are hashes of names, so they stay valid if entries are removed.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

/// A file of the machine, and its number in the guest.
struct FileNumber {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t number;  ///< 0: the slot is free
};

/// Numbers in the order of first calls, from 2: programs take 0 for none and 1 for bad blocks.
class Numbers {
 public:
  /// The number of a file; a new one if it is `new_file`, which may have taken over the inode of
  /// another that is gone.
  std::uint64_t number_of(std::uint64_t device, std::uint64_t inode, bool new_file) {
    if (2 * count_ >= slots_) grow();
    FileNumber* found = slot_of(device, inode);
    if (found->number == 0) {
      *found = {device, inode, 0};
      ++count_;
      new_file = true;
    }
    if (new_file) found->number = next_++;
    return found->number;
  }

 private:
  FileNumber* slot_of(std::uint64_t device, std::uint64_t inode) const {
    std::uint64_t at = (inode * 0x9e3779b97f4a7c15U ^ device) % slots_;
    while (table_[at].number != 0 && (table_[at].device != device || table_[at].inode != inode)) {
      at = (at + 1) % slots_;
    }
    return &table_[at];
  }

  void grow() {
    const Numbers before = *this;
    slots_ = slots_ == 0 ? 4096 : 2 * slots_;
    table_ = static_cast<FileNumber*>(std::calloc(slots_, sizeof(FileNumber)));
    if (table_ == nullptr) std::abort();
    for (std::uint64_t i = 0; i < before.slots_; ++i) {
      const FileNumber& each = before.table_[i];
      if (each.number != 0) *slot_of(each.device, each.inode) = each;
    }
    std::free(before.table_);
  }

  FileNumber* table_ = nullptr;
  std::uint64_t slots_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 2;
};

Numbers numbers;

/// statx(2) with the guest's inode number.
int read_status(int directory, const char* path, int flags, unsigned int mask, struct statx* status,
                bool new_file) {
  const long result = syscall(SYS_statx, directory, path, flags, mask, status);
  if (result != 0) return static_cast<int>(result);
  const std::uint64_t device =
      std::uint64_t{status->stx_dev_major} << 32 | std::uint64_t{status->stx_dev_minor};
  status->stx_ino = numbers.number_of(device, status->stx_ino, new_file);
  return 0;
}

/// Gives a file that was just made a number of its own.
void number_new(int directory, const char* path) {
  struct statx status{};
  read_status(directory, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_INO, &status, true);
}

/// The result of a call that makes a file, which has a number of its own then.
int numbered(int result, const char* path) {
  if (result == 0) number_new(AT_FDCWD, path);
  return result;
}

/// libc's function of a name, which is replaced here.
template <typename Function>
Function libc_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

struct Entry {
  std::uint64_t offset;  ///< of its name, positive and below 2^63: what d_off holds
  dirent64 entry;
};

int by_offset(const void* left, const void* right) {
  const std::uint64_t one = static_cast<const Entry*>(left)->offset;
  const std::uint64_t other = static_cast<const Entry*>(right)->offset;
  return one < other ? -1 : one > other ? 1 : 0;
}

/// FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv), without its highest bit.
std::uint64_t offset_of(const char* name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (; *name != 0; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3U;
  return (hash & 0x7fffffffffffffffU) | 1;
}

/// A directory as opendir() found it, in the guest's order. It stands for libc's DIR.
struct Listing {
  Entry* entries = nullptr;
  std::size_t count = 0;
  std::size_t next = 0;
};

Listing* listing_of(DIR* directory) { return reinterpret_cast<Listing*>(directory); }

}  // namespace

extern "C" {

int statx(int directory, const char* path, int flags, unsigned int mask,
          struct statx* status) noexcept {
  return read_status(directory, path, flags, mask, status, false);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t mode = has_mode ? va_arg(more, mode_t) : 0;
  va_end(more);
  const int opened = libc_function<int (*)(const char*, int, ...)>("open64")(path, flags, mode);
  // hostfs asks for O_CREAT only where there is no file.
  if (opened >= 0 && (flags & O_CREAT) != 0) number_new(opened, "");
  return opened;
}

int mkdir(const char* path, mode_t mode) noexcept {
  return numbered(libc_function<int (*)(const char*, mode_t)>("mkdir")(path, mode), path);
}

int symlink(const char* target, const char* path) noexcept {
  return numbered(libc_function<int (*)(const char*, const char*)>("symlink")(target, path), path);
}

int mknod(const char* path, mode_t mode, dev_t device) noexcept {
  return numbered(libc_function<int (*)(const char*, mode_t, dev_t)>("mknod")(path, mode, device),
                  path);
}

DIR* opendir(const char* path) {
  DIR* opened = libc_function<DIR* (*)(const char*)>("opendir")(path);
  if (opened == nullptr) return nullptr;
  auto* listing = static_cast<Listing*>(std::calloc(1, sizeof(Listing)));
  if (listing == nullptr) std::abort();
  const auto next = libc_function<dirent64* (*)(DIR*)>("readdir64");
  std::size_t capacity = 0;
  while (const dirent64* entry = next(opened)) {
    // No name in a guest is longer than NAME_MAX; some file systems have longer ones.
    if (entry->d_reclen > sizeof(dirent64)) continue;
    if (listing->count == capacity) {
      capacity = capacity == 0 ? 64 : 2 * capacity;
      auto* larger = std::realloc(listing->entries, capacity * sizeof(Entry));
      if (larger == nullptr) std::abort();
      listing->entries = static_cast<Entry*>(larger);
    }
    Entry& made = listing->entries[listing->count++];
    std::memcpy(&made.entry, entry, entry->d_reclen);
    made.offset = offset_of(entry->d_name);
    made.entry.d_off = static_cast<off64_t>(made.offset);
  }
  std::qsort(listing->entries, listing->count, sizeof(Entry), by_offset);
  // In that order: files have numbers in the order in which they are first seen.
  for (std::size_t i = 0; i < listing->count; ++i) {
    struct statx status{};
    dirent64& entry = listing->entries[i].entry;
    if (read_status(dirfd(opened), entry.d_name, AT_SYMLINK_NOFOLLOW, STATX_INO, &status, false) ==
        0) {
      entry.d_ino = status.stx_ino;
    }
  }
  libc_function<int (*)(DIR*)>("closedir")(opened);
  return reinterpret_cast<DIR*>(listing);
}

void seekdir(DIR* directory, long offset) noexcept {
  Listing* listing = listing_of(directory);
  listing->next = 0;
  while (listing->next < listing->count &&
         listing->entries[listing->next].offset <= static_cast<std::uint64_t>(offset)) {
    ++listing->next;
  }
}

dirent64* readdir64(DIR* directory) {
  Listing* listing = listing_of(directory);
  return listing->next < listing->count ? &listing->entries[listing->next++].entry : nullptr;
}

int closedir(DIR* directory) {
  std::free(listing_of(directory)->entries);
  std::free(directory);
  return 0;
}
}
