/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fds.c - see fds.h. */
#include "job/fds.h"

#include "base/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* ---- memory files ---- */

int rnl_memfd_new(const char *name, size_t bytes, unsigned seals, int *fd)
{
    if (bytes > INT64_MAX || !rnl_limit_allows_file(bytes))
        return -EFBIG;
    int f = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (f < 0 && errno == EINVAL) /* Linux before 6.3 */
        f = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (f < 0)
        return -errno;
    if (ftruncate(f, (off_t)bytes) < 0 || fcntl(f, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | (int)seals) < 0) {
        int e = errno;
        close(f);
        return -e;
    }
    *fd = f;
    return 0;
}

const char *rnl_memfd_remedy(int e)
{
    switch (e) {
    case EFBIG:
        return "raise the limit of file sizes (ulimit -f), which shared memory is held to as well";
    case EMFILE:
    case ENFILE:
        return "raise the limit of descriptors (ulimit -n)";
    case ENOMEM:
        return "free memory, or raise its limit (ulimit -v)";
    case ENOSYS:
    case EPERM:
    case EACCES:
        return "memory files need Linux 5.3 or newer, and no filter that forbids memfd_create";
    }
    return "raise the limits of descriptors and of memory (ulimit -n, ulimit -v)";
}

int rnl_memfd_check(int fd, size_t bytes, unsigned seals)
{
    struct stat st;
    int want = F_SEAL_SHRINK | F_SEAL_GROW | (int)seals;
    int have = fcntl(fd, F_GET_SEALS);
    if (have < 0 || (have & want) != want || fstat(fd, &st) < 0)
        return -EINVAL;
    return S_ISREG(st.st_mode) && st.st_size >= 0 && (uint64_t)st.st_size == bytes ? 0 : -EINVAL;
}

/* ---- packets ---- */

int rnl_packet_socket_check(int fd)
{
    int domain = 0, type = 0;
    socklen_t n = sizeof domain, m = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) < 0)
        return -errno;
    return domain == AF_UNIX && type == SOCK_SEQPACKET ? 0 : -ENOTSOCK;
}

int rnl_packet_pair(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
}

int rnl_packet_send(int fd, const void *bytes, size_t n, const int *fds, unsigned nfds, int wait)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RNL_PACKET_FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    if (nfds > RNL_PACKET_FDS_MAX)
        return -EINVAL;
    if (nfds > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
    }
    for (;;) {
        if (sendmsg(fd, &msg, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) >= 0)
            return 0;
        if (errno != EINTR)
            return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    }
}

/* Whoever sent it may have told it to linger: then closing it would block us until its data are read. */
static void close_foreign(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* fails on what is no socket */
    close(fd);
}

static void take_control(struct msghdr *msg, struct rnl_packet *out)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_len < CMSG_LEN(0))
            continue;
        size_t n = c->cmsg_len - CMSG_LEN(0);
        if (c->cmsg_type == SCM_RIGHTS) {
            for (size_t i = 0; i + sizeof(int) <= n; i += sizeof(int)) {
                int f;
                memcpy(&f, CMSG_DATA(c) + i, sizeof f);
                if (out->nfds < RNL_PACKET_FDS_MAX) {
                    out->fds[out->nfds++] = f;
                } else {
                    close_foreign(f); /* there is no room for so many */
                    out->cut = 1;
                }
            }
        } else if (c->cmsg_type == SCM_CREDENTIALS && n >= sizeof(struct ucred)) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            out->pid = who.pid > 0 ? who.pid : 0;
        }
    }
}

int rnl_packet_receive(int fd, void *bytes, size_t room, unsigned most, struct rnl_packet *out, int wait)
{
    const size_t pid_bytes = CMSG_SPACE(sizeof(struct ucred));
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RNL_PACKET_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = bytes, .iov_len = room};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    int passes_pid = 0;
    socklen_t size = sizeof passes_pid;
    /* To the byte: room that is left over would be filled with descriptors. */
    if (getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &passes_pid, &size) == 0 && passes_pid)
        msg.msg_controllen = pid_bytes;
    if (most > 0)
        msg.msg_controllen += CMSG_LEN((most < RNL_PACKET_FDS_MAX ? most : RNL_PACKET_FDS_MAX) * sizeof(int));
    if (msg.msg_controllen > 0)
        msg.msg_control = control.bytes;
    memset(out, 0, sizeof *out);
    ssize_t n;
    do {
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : errno == ECONNRESET ? -EPIPE : -errno;
    out->cut = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    take_control(&msg, out);
    if (n == 0) { /* no message of ours is empty */
        rnl_packet_drop(out);
        return -EPIPE;
    }
    out->n = (size_t)n;
    return 0;
}

void rnl_packet_drop(struct rnl_packet *p)
{
    for (unsigned i = 0; i < p->nfds; i++)
        close_foreign(p->fds[i]);
    p->nfds = 0;
}

/* Files and folders may belong to a file system that somebody else runs; what has seals is shared memory. The kernel
 * answers both questions by itself. */
int rnl_packet_refuse_fd(int fd)
{
    struct statx st;
    int of_memory = fcntl(fd, F_GET_SEALS) >= 0;
    if (!of_memory && (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) < 0 || S_ISREG(st.stx_mode) ||
                       S_ISDIR(st.stx_mode) || S_ISLNK(st.stx_mode)))
        return -EBUSY;
    close_foreign(fd);
    return 0;
}
