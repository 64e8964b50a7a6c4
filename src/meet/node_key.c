/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_key.c - reads, writes and shows the key of node_key.h. */
#include "meet/node_key.h"

#include "base/error.h"
#include "net/wire/bytes.h"
#include "runnel/runnel.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char of_root[] = "/etc/runnel/key";
enum { DIGITS = 2 * RNL_NODE_KEY_BYTES, PRINTED = 16, FIRST_PORT = 20000, PORTS = 10000 };

int rnl_node_key_file(char *out, size_t n)
{
    struct passwd entry, *found = NULL;
    char buf[4096];
    const uid_t uid = geteuid();
    if (uid == 0) {
        snprintf(out, n, "%s", of_root);
        return 0;
    }
    if (getpwuid_r(uid, &entry, buf, sizeof buf, &found) != 0 || !found || found->pw_dir[0] != '/' ||
        (size_t)snprintf(out, n, "%s/.config/runnel/key", found->pw_dir) >= n)
        return rnl_fail(RNL_ERR_ARG, "user %u has no home directory where a key could be: name a file", (unsigned)uid);
    return 0;
}

bool rnl_node_key_present(void)
{
    char file[4096];
    return access(of_root, F_OK) == 0 || (rnl_node_key_file(file, sizeof file) == 0 && access(file, F_OK) == 0);
}

bool rnl_node_key_parse(const char *text, unsigned char out[RNL_NODE_KEY_BYTES])
{
    size_t got;
    text += strspn(text, " \t\r\n");
    return strspn(text, "0123456789abcdefABCDEF") == DIGITS &&
           text[DIGITS + strspn(text + DIGITS, " \t\r\n")] == '\0' &&
           sodium_hex2bin(out, RNL_NODE_KEY_BYTES, text, DIGITS, NULL, &got, NULL) == 0 && got == RNL_NODE_KEY_BYTES;
}

int rnl_node_key_read(const char *file, unsigned char out[RNL_NODE_KEY_BYTES])
{
    char text[DIGITS + 16];
    struct stat st;
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return rnl_fail(RNL_ERR_UNREACHABLE,
                        "there is no key in %.200s: make one with `runnel key --new`, and install "
                        "it on each host with `runnel key --install`",
                        file);
    bool good =
        fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
    const ssize_t n = good ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    good = n > 0 && rnl_node_key_parse(text, out);
    sodium_memzero(text, sizeof text);
    return good ? 0
                : rnl_fail(
                      RNL_ERR_REFUSED,
                      "the key in %.200s is not used: it has to be a file of this user's, no link, that nobody else "
                      "may read or write (mode 0600), with %d hexadecimal digits",
                      file, DIGITS);
}

/* Makes the folders on the way to the file. The last one is for its owner alone. */
static int make_folders(const char *file)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s", file) >= sizeof path)
        return -ENAMETOOLONG;
    const char *last = strrchr(path, '/');
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, at == last && geteuid() != 0 ? 0700 : 0755) < 0 && errno != EEXIST)
            return -errno;
        *at = '/';
    }
    return 0;
}

static int write_new(const char *file, const char *text, size_t n)
{
    char other[4096 + 16];
    if ((size_t)snprintf(other, sizeof other, "%s.%ld", file, (long)getpid()) >= sizeof other)
        return -ENAMETOOLONG;
    const int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int e = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0 ? 0 : errno ? -errno : -EIO;
    if (close(fd) < 0 && e == 0)
        e = -errno;
    if (e == 0 && link(other, file) < 0) /* unlike rename, it does not take the place of a file that is there */
        e = -errno;
    (void)unlink(other);
    return e;
}

int rnl_node_key_write(const char *file, const unsigned char key[RNL_NODE_KEY_BYTES])
{
    char text[DIGITS + 2];
    int e = make_folders(file);
    (void)sodium_bin2hex(text, sizeof text, key, RNL_NODE_KEY_BYTES);
    memcpy(text + DIGITS, "\n", 2);
    errno = 0;
    if (e == 0)
        e = write_new(file, text, DIGITS + 1);
    sodium_memzero(text, sizeof text);
    if (e == -EEXIST)
        return rnl_fail(RNL_ERR_REFUSED,
                        "there is a key in %.200s already: remove that file first, if the daemons of "
                        "the other hosts are to get a new one, too",
                        file);
    return e == 0 ? 0 : rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot write the key to %.200s", file);
}

/* A hash that tells nothing of the key. */
static void shown(const unsigned char key[RNL_NODE_KEY_BYTES], const char *label, unsigned char out[PRINTED])
{
    (void)crypto_generichash(out, PRINTED, (const unsigned char *)label, strlen(label), key, RNL_NODE_KEY_BYTES);
}

void rnl_node_key_print(const unsigned char key[RNL_NODE_KEY_BYTES], char out[RNL_NODE_KEY_PRINT])
{
    unsigned char hash[PRINTED];
    shown(key, "runnel: fingerprint", hash);
    for (unsigned i = 0; i < PRINTED / 2; i++)
        snprintf(out + 5 * i, 6, "%02x%02x%s", hash[2 * i], hash[2 * i + 1], i + 1 < PRINTED / 2 ? "-" : "");
}

uint16_t rnl_node_key_port(const unsigned char key[RNL_NODE_KEY_BYTES], bool of_node)
{
    unsigned char hash[PRINTED];
    shown(key, of_node ? "runnel: port of nodes" : "runnel: port of a user", hash);
    return (uint16_t)(FIRST_PORT + rnl_get32(hash) % PORTS);
}
