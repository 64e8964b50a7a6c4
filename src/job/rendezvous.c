/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous.c - reads the file of rendezvous.h, and calls the launcher that wrote it. */
#include "job/rendezvous.h"

#include "base/env.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    KEY_DIGITS = 2 * RNL_RENDEZVOUS_KEY,
    PAUSE_MS = 50, /* between the first two rounds of calls; later pauses double */
    PAUSE_MAX_MS = 2000
};
static const char mine[] =
    "it must be a file of this user's that nobody else can read (mode 0600), whole and not a link";

static bool has_key(const char *text)
{
    return strspn(text, "0123456789abcdef") == KEY_DIGITS;
}

static int read_file(const char *file, char *text)
{
    struct stat st;
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return rnl_fail_errno(RNL_ERR_JOB, errno,
                              "cannot read the rendezvous file %.200s: start `runnel run --wait-for` first, or unset "
                              "RUNNEL_RENDEZVOUS to run this program alone",
                              file);
    const bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
    const ssize_t n = good ? read(fd, text, RNL_RENDEZVOUS_TEXT) : -1;
    close(fd);
    if (n < 0)
        return rnl_fail(RNL_ERR_JOB, "the rendezvous file %.200s is refused: %s", file, mine);
    text[n] = '\0';
    return 0;
}

int rnl_rendezvous_read(const char *where, struct rnl_rendezvous *out)
{
    char text[RNL_RENDEZVOUS_TEXT + 1], line[sizeof out->agent + 8];
    int version = 0, r = 0;
    *out = (struct rnl_rendezvous){.addresses = 0};
    if (sodium_init() < 0)
        return rnl_fail(RNL_ERR_SYSTEM, "the system gives no random numbers");
    if (has_key(where))
        snprintf(text, sizeof text, "%s", where);
    else
        r = read_file(where, text);
    if (r < 0)
        return r;
    const bool key =
        has_key(text) && sodium_hex2bin(out->key, sizeof out->key, text, KEY_DIGITS, NULL, NULL, NULL) == 0;
    for (const char *at = key ? text + KEY_DIGITS : ""; *at != '\0'; at += strcspn(at, "\n"), at += *at != '\0') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        (void)sscanf(line, "runnel-rendezvous %d", &version);
        (void)sscanf(line, "agent %4095[^\n]", out->agent);
        if (out->addresses < RNL_RENDEZVOUS_ADDRESSES &&
            sscanf(line, "master %63s %7s", out->address[out->addresses].text, out->address[out->addresses].port) == 2)
            out->addresses++;
    }
    explicit_bzero(text, sizeof text);
    if (key && version == RNL_RENDEZVOUS_VERSION && out->addresses > 0)
        return 0;
    explicit_bzero(out, sizeof *out);
    return rnl_fail(RNL_ERR_JOB,
                    "RUNNEL_RENDEZVOUS leads to no rendezvous of this release: it names the file of `runnel run "
                    "--rendezvous`, or has its lines; %s",
                    mine);
}

/* Connects to a numeric address. Returns the socket, or -1 with errno. */
static int connect_to(const char *address, const char *port)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *to;
    errno = EINVAL;
    if (getaddrinfo(address, port, &hints, &to) != 0)
        return -1;
    struct pollfd p = {.fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .events = POLLOUT};
    int e = p.fd < 0 || connect(p.fd, to->ai_addr, to->ai_addrlen) < 0 ? errno : 0;
    freeaddrinfo(to);
    if (e == EINPROGRESS) {
        socklen_t n = sizeof e;
        if (poll(&p, 1, RNL_SECURE_STREAM_LIMIT_MS) != 1)
            e = ETIMEDOUT;
        else if (getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
            e = errno;
    }
    if (e == 0)
        return p.fd;
    if (p.fd >= 0)
        close(p.fd);
    errno = e;
    return -1;
}

/* Calls each address once. *definite: no launcher of this job listens at any of them. The record is about the last. */
static struct rnl_secure_stream *call_each(const struct rnl_rendezvous *r, bool *definite)
{
    *definite = true;
    for (unsigned i = 0; i < r->addresses; i++) {
        const char *address = r->address[i].text, *port = r->address[i].port;
        const int fd = connect_to(address, port);
        bool answered;
        if (fd < 0) {
            *definite = *definite && errno == ECONNREFUSED;
            (void)rnl_fail(RNL_ERR_JOB, "the launcher cannot be reached at %s, port %s (%s)", address, port,
                           strerror(errno));
            continue;
        }
        struct rnl_secure_stream *s = rnl_secure_stream_open(fd, false, r->key, &answered);
        if (s)
            return s;
        *definite = *definite && answered; /* else it has too many callers at the moment */
        (void)rnl_fail(RNL_ERR_JOB, "what answers at %s, port %s, is not the launcher of this job: it has another key",
                       address, port);
    }
    return NULL;
}

struct rnl_secure_stream *rnl_rendezvous_call(const struct rnl_rendezvous *r, int wait_ms)
{
    const uint64_t until_ns = rnl_host_now_ns(NULL) + (uint64_t)wait_ms * 1000000;
    bool definite;
    for (long pause_ms = PAUSE_MS;; pause_ms = 2 * pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS) {
        const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
        struct rnl_secure_stream *s = call_each(r, &definite);
        if (s || definite || rnl_host_now_ns(NULL) >= until_ns)
            return s;
        (void)nanosleep(&pause, NULL);
    }
}

static void derive(const unsigned char key[RNL_RENDEZVOUS_KEY], const char *label, unsigned char out[RNL_JOIN_PROOF])
{
    (void)crypto_auth(out, (const unsigned char *)label, strlen(label), key);
}

socklen_t rnl_rendezvous_socket(const unsigned char key[RNL_RENDEZVOUS_KEY], struct sockaddr_un *out)
{
    unsigned char name[RNL_JOIN_PROOF];
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    derive(key, "runnel: name of the agent's socket", name);
    (void)sodium_bin2hex(out->sun_path + 1, sizeof out->sun_path - 1, name, sizeof name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + 2 * sizeof name);
}

void rnl_rendezvous_proof(const unsigned char key[RNL_RENDEZVOUS_KEY], unsigned char out[RNL_JOIN_PROOF])
{
    derive(key, "runnel: proof of a joiner", out);
}

bool rnl_join_is_ours(int fd, pid_t *pid)
{
    struct ucred who;
    socklen_t n = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return false;
    if (pid)
        *pid = who.pid;
    return who.uid == geteuid();
}
