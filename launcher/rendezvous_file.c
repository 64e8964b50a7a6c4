/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous_file.c - see rendezvous_file.h. Part of the runnel command: it prints to standard error. */
#include "launcher/rendezvous_file.h"

#include "job/rendezvous.h"
#include "launcher/launcher.h"
#include "net/probe/address_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, ADDRESSES_ROOM = 4000 };
struct text {
    char at[RNL_RENDEZVOUS_TEXT];
    size_t bytes;
};

/* On one address; or on all, of both kinds, or where there is no IPv6 of IPv4. */
static int listen_at(const char *address)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    const int no = 0;
    struct addrinfo *all;
    if (getaddrinfo(address ? address : "::", "0", &hints, &all) != 0)
        return -EADDRNOTAVAIL;
    const int fd = socket(all->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !address)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    const int e = fd >= 0 && bind(fd, all->ai_addr, all->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0 ? 0 : -errno;
    freeaddrinfo(all);
    if (e == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return address ? e : listen_at("0.0.0.0");
}

static unsigned port_of(int fd)
{
    struct sockaddr_in6 at = {.sin6_port = 0}; /* the port is in the same place in one of IPv4 */
    socklen_t n = sizeof at;
    return getsockname(fd, (struct sockaddr *)&at, &n) == 0 ? ntohs(at.sin6_port) : 0;
}

static void add_line(struct text *t, const char *address, unsigned port)
{
    const size_t room = ADDRESSES_ROOM - t->bytes;
    const int n = snprintf(t->at + t->bytes, room, "master %s %u\n", address, port);
    if (n > 0 && (size_t)n < room)
        t->bytes += (size_t)n;
}

/* The loopback's last. */
static void add_all(struct text *t, unsigned port)
{
    struct rnl_host_address all[RNL_HOST_ADDRESSES_MAX];
    const int n = rnl_host_addresses(all, RNL_HOST_ADDRESSES_MAX);
    for (int i = 0; i < n; i++) {
        char text[INET6_ADDRSTRLEN];
        const bool mapped = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)all[i].ip);
        if (inet_ntop(mapped ? AF_INET : AF_INET6, all[i].ip + (mapped ? 12 : 0), text, sizeof text))
            add_line(t, text, port);
    }
}

/* There is such a file already. */
static void report_owner(const char *file)
{
    struct rnl_rendezvous r;
    if (rnl_rendezvous_read(file, &r) < 0) {
        fprintf(stderr, "runnel: there is a file %s already, which is no rendezvous file of yours: name another\n",
                file);
        return;
    }
    struct rnl_auth_stream *c = rnl_rendezvous_call(&r, 0);
    fprintf(
        stderr,
        c ? "runnel: the rendezvous file %s belongs to a job that runs: name another\n"
          : "runnel: the rendezvous file %s is left over from a launcher that is gone: remove it, or name another\n",
        file);
    rnl_auth_stream_free(c);
    explicit_bzero(&r, sizeof r);
}

static int write_file(const char *file, const struct text *t)
{
    const int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        report_owner(file);
        return -1;
    }
    const bool good = fd >= 0 && write(fd, t->at, t->bytes) == (ssize_t)t->bytes;
    if (!good)
        fprintf(stderr, "runnel: cannot write the rendezvous file %s: %s\n", file, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !good)
        (void)unlink(file);
    return good ? 0 : -1;
}

int rnl_rendezvous_file_new(const struct rnl_launch *job, const unsigned char *key, int *fd)
{
    const char *address = job->rendezvous_address;
    struct text t;
    *fd = listen_at(address);
    if (*fd < 0) {
        fprintf(stderr, "runnel: cannot listen for ranks%s%s: %s\n", address ? " at " : "", address ? address : "",
                strerror(-*fd));
        return -1;
    }
    sodium_bin2hex(t.at, sizeof t.at, key, RNL_RENDEZVOUS_KEY);
    t.bytes = 2 * RNL_RENDEZVOUS_KEY;
    t.bytes += (size_t)snprintf(t.at + t.bytes, 64, "\nrunnel-rendezvous %d\n", RNL_RENDEZVOUS_VERSION);
    if (address)
        add_line(&t, address, port_of(*fd));
    else
        add_all(&t, port_of(*fd));
    t.bytes += (size_t)snprintf(t.at + t.bytes, sizeof t.at - t.bytes, "agent %s\n", job->agent);
    const int r = write_file(job->rendezvous_file, &t);
    explicit_bzero(&t, sizeof t);
    if (r < 0) {
        close(*fd);
        *fd = -1;
    }
    return r;
}
