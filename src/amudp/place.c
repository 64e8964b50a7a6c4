/* SPDX-License-Identifier: BSD-3-Clause
 *
 * place.c - what stand-ins and workers share: the key's file, the sockets' names, the proof. */
#include "amudp/place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRONG(...) (rnl_amudp_wrong(AM_ERR_RESOURCE, "AMUDP_SPMDStartup", __VA_ARGS__), -1)

static_assert(crypto_auth_BYTES == RNL_PLACE_PROOF && crypto_auth_KEYBYTES == RNL_PLACE_KEY, "");

int rnl_amudp_place_new(struct rnl_amudp_place *out)
{
    const char *folder = getenv("TMPDIR");
    unsigned char key[RNL_PLACE_KEY], name[12];
    char text[2 * sizeof name + 1];
    if (sodium_init() < 0)
        return WRONG("there are no random numbers here");
    if (folder == NULL || access(folder, W_OK) < 0)
        folder = "/tmp";
    randombytes_buf(key, sizeof key);
    randombytes_buf(name, sizeof name);
    sodium_bin2hex(text, sizeof text, name, sizeof name);
    snprintf(out->name, sizeof out->name, "amudp-%s", text);
    if (snprintf(out->file, sizeof out->file, "%s/amudp-key-XXXXXX", folder) >= (int)sizeof out->file)
        return WRONG("the name of the folder for temporary files is too long: set TMPDIR to another");
    int fd = mkostemp(out->file, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return WRONG("cannot make a file for the key of the job, %s: %s", out->file, strerror(errno));
    ssize_t n = write(fd, key, sizeof key);
    int e = errno;
    sodium_memzero(key, sizeof key);
    close(fd);
    if (n == (ssize_t)sizeof key)
        return 0;
    unlink(out->file);
    return WRONG("cannot write the key of the job to %s: %s", out->file, strerror(e));
}

int rnl_amudp_place_key(const char *file, unsigned char key[RNL_PLACE_KEY])
{
    struct stat st;
    if (sodium_init() < 0)
        return WRONG("there are no random numbers here");
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return WRONG("cannot read the key of the job in %s: %s", file, strerror(errno));
    int good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
    ssize_t n = good ? read(fd, key, RNL_PLACE_KEY) : -1;
    close(fd);
    if (!good)
        return WRONG("%s is to have the key of the job: then it must be this user's file, and nobody else's (0600)",
                     file);
    return n == RNL_PLACE_KEY ? 0 : WRONG("%s does not have the key of the job", file);
}

socklen_t rnl_amudp_place_address(const char *name, int rank, struct sockaddr_un *out)
{
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "%.60s.%d", name, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}
