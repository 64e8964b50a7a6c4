/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fds.c - memory files by memfd_create, and packets with descriptors by sendmsg and recvmsg (fds.h). */
#include "job/fds.h"

#include "base/error.h"
#include "base/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* ---- memory files ---- */

int rnl_memfd_new(const char *name, size_t bytes, unsigned seals, int *fd)
{
    const unsigned all = seals & RNL_MEMFD_MAY_GROW ? seals & ~RNL_MEMFD_MAY_GROW : seals | F_SEAL_GROW;
    int e = EFBIG, f = -1;
    if (bytes <= INT64_MAX && rnl_limit_allows_file(bytes)) {
        f = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (f < 0 && errno == EINVAL) /* Linux before 6.3 */
            f = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        e = f >= 0 && ftruncate(f, (off_t)bytes) == 0 && fcntl(f, F_ADD_SEALS, (int)(all | F_SEAL_SHRINK)) == 0 ? 0
                                                                                                                : errno;
    }
    *fd = f;
    if (e == 0)
        return 0;
    if (f >= 0)
        close(f);
    *fd = -1;
    return rnl_fail_errno(RNL_ERR_SYSTEM, e, "cannot make a memory file of %zu bytes (%s): %s", bytes, name,
                          rnl_memfd_remedy(e));
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
    const int want = F_SEAL_SHRINK | F_SEAL_GROW | (int)seals, have = fcntl(fd, F_GET_SEALS);
    return have >= 0 && (have & want) == want && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= 0 &&
                   (uint64_t)st.st_size == bytes
               ? 0
               : RNL_ERR_JOB;
}

/* ---- packets ---- */

int rnl_seqpacket_pair(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0)
        return 0;
    return rnl_fail_errno(RNL_ERR_SYSTEM, errno,
                          "cannot make a pair of sockets: raise the limit of descriptors (ulimit -n)");
}

/* The status of a system call on a socket that has just failed. */
static int failed(void)
{
    const int e = errno;
    if (e == EAGAIN || e == EWOULDBLOCK)
        return RNL_NO_ROOM;
    if (e == EPIPE || e == ECONNRESET || e == ENOTCONN)
        return rnl_fail_errno(RNL_ERR_JOB, e, "the other end of a socket of this job is closed: start the job again");
    return rnl_fail_errno(RNL_ERR_SYSTEM, e,
                          "the system cannot carry a message of this job: start it with more memory or fewer ranks");
}

int rnl_seqpacket_send(int fd, const void *bytes, size_t n, const int *fds, unsigned nfds, int wait)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RNL_SEQPACKET_FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
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
    ssize_t sent;
    do {
        sent = sendmsg(fd, &msg, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? failed() : 0;
}

/* Closes a descriptor of another process. Its sender may have set SO_LINGER, with which close would block until the
 * socket's data are read. */
static void close_foreign(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* fails, harmlessly, if it is no socket */
    close(fd);
}

static void take_control(struct msghdr *msg, struct rnl_seqpacket *out)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_len < CMSG_LEN(0))
            continue;
        size_t n = c->cmsg_len - CMSG_LEN(0);
        if (c->cmsg_type == SCM_RIGHTS) {
            for (size_t i = 0; i + sizeof(int) <= n; i += sizeof(int)) {
                int f;
                memcpy(&f, CMSG_DATA(c) + i, sizeof f);
                if (out->nfds < RNL_SEQPACKET_FDS_MAX) {
                    out->fds[out->nfds++] = f;
                } else {
                    (void)!rnl_seqpacket_refuse_fd(f); /* more than the packet has room for */
                    out->cut = 1;
                }
            }
        } else if (c->cmsg_type == SCM_CREDENTIALS && n >= sizeof(struct ucred)) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            out->pid = who.pid > 0 ? who.pid : 0;
            out->uid = who.uid;
            out->gid = who.gid;
            out->has_cred = 1;
        } else if (c->cmsg_type == SCM_PIDFD && n >= sizeof(int)) {
            memcpy(&out->pidfd, CMSG_DATA(c), sizeof out->pidfd); /* negative: the process has ended */
        }
    }
}

/* `extra` is room for what the kernel adds by itself, which a sender can fill with as many bytes of descriptors. */
static int receive(int fd, struct iovec *part, unsigned most, size_t extra, struct rnl_seqpacket *out, int wait)
{
    const size_t pid_bytes = CMSG_SPACE(sizeof(struct ucred));
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RNL_SEQPACKET_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr msg = {.msg_iov = part, .msg_iovlen = 1, .msg_controllen = extra};
    int passes_pid = 0;
    socklen_t size = sizeof passes_pid;
    /* The room is exact to the byte, since the kernel fills any that is left over with descriptors. */
    if (getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &passes_pid, &size) == 0 && passes_pid)
        msg.msg_controllen += pid_bytes;
    if (most > 0)
        msg.msg_controllen += CMSG_LEN((most < RNL_SEQPACKET_FDS_MAX ? most : RNL_SEQPACKET_FDS_MAX) * sizeof(int));
    if (msg.msg_controllen > 0)
        msg.msg_control = control.bytes;
    memset(out, 0, sizeof *out);
    out->pidfd = -1;
    ssize_t n;
    int resets = 0; /* told once if the other end closed with something unread, before what that end has sent */
    do {
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    } while (n < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    if (n < 0)
        return failed();
    out->cut = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    take_control(&msg, out);
    if (n == 0) { /* no message of this protocol is empty, so this is the end of file */
        for (unsigned i = 0; i < out->nfds; i++)
            (void)!rnl_seqpacket_refuse_fd(out->fds[i]);
        if (out->pidfd >= 0)
            close(out->pidfd);
        out->nfds = 0;
        out->pidfd = -1;
        errno = EPIPE;
        return failed();
    }
    out->n = (size_t)n;
    return 0;
}

int rnl_seqpacket_receive(int fd, void *bytes, size_t room, unsigned most, struct rnl_seqpacket *out, int wait)
{
    struct iovec part = {.iov_base = bytes, .iov_len = room};
    return receive(fd, &part, most, 0, out, wait);
}

int rnl_seqpacket_receive_pidfd(int fd, void *bytes, size_t room, struct rnl_seqpacket *out)
{
    struct iovec part = {.iov_base = bytes, .iov_len = room};
    return receive(fd, &part, 0, CMSG_LEN(sizeof(int)), out, 0);
}

void rnl_seqpacket_drop(struct rnl_seqpacket *p)
{
    for (unsigned i = 0; i < p->nfds; i++)
        close_foreign(p->fds[i]);
    p->nfds = 0;
}

bool rnl_seqpacket_is_socket(int fd)
{
    int domain = 0, type = 0;
    socklen_t n = sizeof domain, m = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) == 0 && type == SOCK_SEQPACKET;
}

/* Closing can block for files and folders, whose file system another user may run, but not for shared memory, which has
 * seals. The kernel answers both questions without asking such a file system. */
int rnl_seqpacket_refuse_fd(int fd)
{
    struct statx st;
    const bool of_memory = fcntl(fd, F_GET_SEALS) >= 0;
    if (!of_memory && (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) < 0 || S_ISREG(st.stx_mode) ||
                       S_ISDIR(st.stx_mode) || S_ISLNK(st.stx_mode)))
        return rnl_fail(RNL_ERR_JOB, "a rank sent a file or a folder, whose closing may block: it is left open");
    close_foreign(fd);
    return 0;
}
