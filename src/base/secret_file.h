// Files that nobody but their owner may read: keys and invitations.
#pragma once

#include <filesystem>

#include "base/bytes.h"
#include "w5xde/result.h"

namespace w5xde {

// Makes the folder with mode 0700, if there is none; those around it get the mode that is usual here.
Status make_private_folder(const std::filesystem::path& folder);

// Writes the file with mode 0600, in place of what had the name before: a reader sees the old one or the new
// one, whole, also after a crash.
Status write_secret_file(const std::filesystem::path& path, Bytes bytes);

// The same, unless there is such a file already: then it stays as it is. However many processes do this at
// once, all find the same file afterwards.
Status make_secret_file(const std::filesystem::path& path, Bytes bytes);

// invalid when others than the owner may read or change the file.
Status check_private(const std::filesystem::path& path);

}  // namespace w5xde
