/* SPDX-License-Identifier: BSD-3-Clause
 *
 * files.h - what the stand-ins for files and for streams share. A copy has descriptors of its own for files of this
 * machine: regular ones, and /dev/null. Standard input is rank 0's; what is written to 1 and 2 is output of the rank.
 */
#ifndef RNL_CLUSTER_FILES_H
#define RNL_CLUSTER_FILES_H

#include "sim/cluster/arena.h"

#include <stdarg.h>
#include <sys/types.h>

int rnl_fd_open(const char *path, int flags, mode_t mode); /* or -1: errno */
int rnl_fd_close(int fd);
ssize_t rnl_fd_read(int fd, void *to, size_t n);
ssize_t rnl_fd_write(int fd, const void *from, size_t n);
off_t rnl_fd_seek(int fd, off_t offset, int whence);

/* Bytes into a stream's buffer, or on: 0, -1. */
int rnl_file_put(struct rnl_guest_file *, const char *bytes, size_t n);
int rnl_file_vprint(struct rnl_guest_file *, const char *format, va_list args);
/* All of the copy's, at exit. */
void rnl_files_flush(void);

#endif
