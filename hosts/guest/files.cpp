// SPDX-License-Identifier: Apache-2.0
//
// Gives the machine's files the same inode numbers and order in a guest on every boot. hostfs shows
// the inode numbers of the machine's file system and the order of entries in its directories. Both
// differ from run to run, and programs depend on them: cp(1) copies in the order of inode numbers,
// find(1) prints in the order of the directory.
//
// This library is preloaded into the guest kernel. It numbers files in the order of their first
// use, and sorts the entries of a directory by a hash of their names. The offset of an entry in the
// directory (d_off) is this hash, so offsets stay valid if other entries are removed.
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
  std::uint64_t number;  ///< 0 if the slot of the table is free
};

/// Numbers files in the order of the first calls. The first number is 2, because programs interpret
/// inode number 0 as no inode and 1 as bad blocks.
class Numbers {
 public:
  /// Return the number of a file. If the file was just created (`new_file`), it gets a new number,
  /// because it may reuse the inode of a deleted file.
  std::uint64_t number_of(std::uint64_t device, std::uint64_t inode, bool new_file) {
    if (2 * count_ >= slots_) grow();
    FileNumber* slot = slot_of(device, inode);
    if (slot->number == 0) {
      *slot = {device, inode, 0};
      ++count_;
      new_file = true;
    }
    if (new_file) slot->number = next_++;
    return slot->number;
  }

 private:
  FileNumber* slot_of(std::uint64_t device, std::uint64_t inode) const {
    std::uint64_t index = (inode * 0x9e3779b97f4a7c15U ^ device) % slots_;
    while (table_[index].number != 0 &&
           (table_[index].device != device || table_[index].inode != inode)) {
      index = (index + 1) % slots_;
    }
    return &table_[index];
  }

  void grow() {
    const Numbers old = *this;
    slots_ = slots_ == 0 ? 4096 : 2 * slots_;
    table_ = static_cast<FileNumber*>(std::calloc(slots_, sizeof(FileNumber)));
    if (table_ == nullptr) std::abort();
    for (std::uint64_t i = 0; i < old.slots_; ++i) {
      const FileNumber& file = old.table_[i];
      if (file.number != 0) *slot_of(file.device, file.inode) = file;
    }
    std::free(old.table_);
  }

  FileNumber* table_ = nullptr;
  std::uint64_t slots_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 2;
};

Numbers numbers;

/// Call statx(2), and replace the inode number by the guest's.
int read_status(int directory, const char* path, int flags, unsigned int mask, struct statx* status,
                bool new_file) {
  const long result = syscall(SYS_statx, directory, path, flags, mask, status);
  if (result != 0) return static_cast<int>(result);
  const std::uint64_t device =
      std::uint64_t{status->stx_dev_major} << 32 | std::uint64_t{status->stx_dev_minor};
  status->stx_ino = numbers.number_of(device, status->stx_ino, new_file);
  return 0;
}

/// Give a new number to a file that was just created.
void number_new_file(int directory, const char* path) {
  struct statx status{};
  read_status(directory, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_INO, &status, true);
}

/// Give a new number to the file if the call that creates it succeeded (`result` is 0). Return
/// `result`.
int number_created_file(int result, const char* path) {
  if (result == 0) number_new_file(AT_FDCWD, path);
  return result;
}

/// Return the function of libc that this library replaces.
template <typename Function>
Function libc_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

struct Entry {
  std::uint64_t offset;  ///< hash of the name for d_off, positive and below 2^63
  dirent64 entry;
};

int compare_offsets(const void* left, const void* right) {
  const std::uint64_t left_offset = static_cast<const Entry*>(left)->offset;
  const std::uint64_t right_offset = static_cast<const Entry*>(right)->offset;
  return left_offset < right_offset ? -1 : left_offset > right_offset ? 1 : 0;
}

/// Return the hash FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv) of a name. The highest bit is
/// cleared and the lowest bit is set, so that the hash is a positive off64_t.
std::uint64_t offset_of(const char* name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (; *name != 0; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3U;
  return (hash & 0x7fffffffffffffffU) | 1;
}

/// The entries of a directory at the time of opendir(), in the guest's order. A pointer to it is
/// passed to the guest kernel in place of a pointer to libc's DIR.
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
  va_list arguments;
  va_start(arguments, flags);
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t mode = has_mode ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const int file = libc_function<int (*)(const char*, int, ...)>("open64")(path, flags, mode);
  // hostfs sets O_CREAT only if the file does not exist.
  if (file >= 0 && (flags & O_CREAT) != 0) number_new_file(file, "");
  return file;
}

int mkdir(const char* path, mode_t mode) noexcept {
  return number_created_file(libc_function<int (*)(const char*, mode_t)>("mkdir")(path, mode),
                             path);
}

int symlink(const char* target, const char* path) noexcept {
  return number_created_file(
      libc_function<int (*)(const char*, const char*)>("symlink")(target, path), path);
}

int mknod(const char* path, mode_t mode, dev_t device) noexcept {
  return number_created_file(
      libc_function<int (*)(const char*, mode_t, dev_t)>("mknod")(path, mode, device), path);
}

DIR* opendir(const char* path) {
  DIR* directory = libc_function<DIR* (*)(const char*)>("opendir")(path);
  if (directory == nullptr) return nullptr;
  auto* listing = static_cast<Listing*>(std::calloc(1, sizeof(Listing)));
  if (listing == nullptr) std::abort();
  const auto read_entry = libc_function<dirent64* (*)(DIR*)>("readdir64");
  std::size_t capacity = 0;
  while (const dirent64* entry = read_entry(directory)) {
    // Leave out names longer than NAME_MAX, which some file systems have but a guest cannot.
    if (entry->d_reclen > sizeof(dirent64)) continue;
    if (listing->count == capacity) {
      capacity = capacity == 0 ? 64 : 2 * capacity;
      auto* larger = std::realloc(listing->entries, capacity * sizeof(Entry));
      if (larger == nullptr) std::abort();
      listing->entries = static_cast<Entry*>(larger);
    }
    Entry& copy = listing->entries[listing->count++];
    std::memcpy(&copy.entry, entry, entry->d_reclen);
    copy.offset = offset_of(entry->d_name);
    copy.entry.d_off = static_cast<off64_t>(copy.offset);
  }
  std::qsort(listing->entries, listing->count, sizeof(Entry), compare_offsets);
  // Number the files after sorting, because files are numbered in the order of their first use.
  for (std::size_t i = 0; i < listing->count; ++i) {
    struct statx status{};
    dirent64& entry = listing->entries[i].entry;
    if (read_status(dirfd(directory), entry.d_name, AT_SYMLINK_NOFOLLOW, STATX_INO, &status,
                    false) == 0) {
      entry.d_ino = status.stx_ino;
    }
  }
  libc_function<int (*)(DIR*)>("closedir")(directory);
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
