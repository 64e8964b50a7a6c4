/* SPDX-License-Identifier: BSD-3-Clause
 *
 * object.c - whether a shared object is all there. The loader maps a file as far as its headers say, and a part that is
 * mapped and not in the file ends the process with a signal, so this is looked at before. */
#include "sim/myrinet/command/command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What ends at or before `size`, in a file whose numbers may be anything. */
static int ends_in(uint64_t size, uint64_t at, uint64_t bytes)
{
    return at <= size && bytes <= size - at;
}

/* Both tables, and each segment of the one of segments. What is no object of this machine the loader refuses itself. */
static int is_whole(int fd, uint64_t size)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) segment;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return 0;
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof segment)
        return 1;
    if (!ends_in(size, head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize) ||
        !ends_in(size, head.e_phoff, (uint64_t)head.e_phnum * sizeof segment))
        return 0;
    for (uint64_t i = 0; i < head.e_phnum; i++)
        if (pread(fd, &segment, sizeof segment, (off_t)(head.e_phoff + i * sizeof segment)) !=
                (ssize_t)sizeof segment ||
            !ends_in(size, segment.p_offset, segment.p_filesz))
            return 0;
    return 1;
}

int myri_cmd_object_is_whole(const char *path)
{
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) < 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return myri_cmd_wrong("%s cannot be loaded (%s)", path, strerror(error));
    }
    int whole = is_whole(fd, (uint64_t)is.st_size);
    close(fd);
    return whole ? 0
                 : myri_cmd_wrong(
                       "%s cannot be loaded (it ends before what it says that it has, at %jd bytes); runnel paper "
                       "build makes it anew",
                       path, (intmax_t)is.st_size);
}
