/* SPDX-License-Identifier: BSD-3-Clause
 *
 * control.h - the control protocol between the launcher and its node agents: frames over a stream of bytes. The stream
 * is the standard input and output of the agent, over ssh or not, or any other pair of pipes or sockets. The codec is
 * pure and checks all that arrives, since a login shell may write to that stream, too.
 *
 * The agent begins with a line of text, whatever a login shell may have printed before it:
 *
 *   runnel-agent PROTOCOL.PACKETS RELEASE\n        PACKETS is the version of what ranks send to other hosts' ranks
 *
 * From then on both sides send frames. Their bodies are structures of fixed layout, which equal on all hosts since one
 * release of a little-endian build is on all; what comes from a peer is copied, checked, and only then used.
 *
 *   0       4        8
 *   +-------+--------+------------------+
 *   | kind  | bytes  | body: `bytes`    |
 *   +-------+--------+------------------+
 *
 *   to an agent; those marked with * go to all
 *   JOB        struct rnl_job_spec: the job, and its keys
 *   HOSTS  *   struct rnl_host_info of each host; then they probe their addresses (net/probe/address_probe.h)
 *   GO     *   start the ranks
 *   SIGNAL *   signal 4
 *   WORD   *   struct rnl_word: a message of the membership (job/membership.h)
 *   INPUT      bytes for rank 0; empty = end of file
 *   ROOM       which 8, bytes 8: credit for so many more bytes of output; 0 = its reader is gone
 *   PING   *   the reply is PONG
 *   FENCE  *   which 4 (enum rnl_fence), bytes: all hosts have said FENCE; what they brought, in the order of hosts
 *   END    *   text: the job is over, and the agent ends; who still waits to join is told the text
 *   from an agent
 *   HERE       struct rnl_host_info of its host
 *   FACTS      struct rnl_host_facts of its host; only of a job that examines hosts (doctor.h), before HERE
 *   PATHS      number 4, so many struct rnl_path_report of the paths to other hosts, for PROBED in such a job
 *   PROBED     number 4, so many struct rnl_probe_failure
 *   WORD
 *   FENCE      which 4, bytes: all ranks of it that run have come to a barrier of MPI's (mpi.h)
 *   EXITED     struct rnl_rank_exit
 *   FINISHED   rank 4: it has exited, and its output has been sent
 *   REPORT        text: a line for standard error
 *   FAIL       exit status 4, text: why this host cannot go on. The first FAIL of any host ends the job
 *   OUTPUT     rank 4, which 4 (1 or 2, standard output or error), bytes
 *   TAKEN      bytes 8: so many more bytes of input may come; 0 = rank 0 reads no more
 *   DONE       no rank of it is left, and all its output has been sent
 *   PONG
 *   ARRIVALS   struct rnl_arrivals: who waits on its host to join (job/rendezvous.h); before JOB, when that changes */
#ifndef RNL_LAUNCHER_CONTROL_H
#define RNL_LAUNCHER_CONTROL_H

#include "job/agent.h"
#include "launcher/doctor/host_facts.h"
#include "net/probe/address_probe.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum {
    RNL_CONTROL_VERSION = 17,
    RNL_CONTROL_FRAME_HEADER = 8,
    RNL_CONTROL_FRAME_MAX = 16 << 20, /* JOB carries an environment */
    RNL_CONTROL_NOISE_MAX = 1 << 16,  /* bytes before the greeting */
    RNL_CONTROL_INPUT_ROOM = 65536,   /* initial credit, bytes */
    RNL_CONTROL_OUTPUT_ROOM = 1 << 18,
    RNL_CONTROL_RELEASE_BYTES = 48,
    RNL_HOSTS_MAX = 512
};

enum rnl_control_kind {
    RNL_CONTROL_JOB = 1,
    RNL_CONTROL_HOSTS,
    RNL_CONTROL_GO,
    RNL_CONTROL_SIGNAL,
    RNL_CONTROL_WORD,
    RNL_CONTROL_INPUT,
    RNL_CONTROL_ROOM,
    RNL_CONTROL_PING,
    RNL_CONTROL_END,
    RNL_CONTROL_FENCE,
    RNL_CONTROL_HERE = 32,
    RNL_CONTROL_PROBED,
    RNL_CONTROL_EXITED,
    RNL_CONTROL_FINISHED,
    RNL_CONTROL_REPORT,
    RNL_CONTROL_FAIL,
    RNL_CONTROL_OUTPUT,
    RNL_CONTROL_TAKEN,
    RNL_CONTROL_DONE,
    RNL_CONTROL_PONG,
    RNL_CONTROL_ARRIVALS,
    RNL_CONTROL_FACTS,
    RNL_CONTROL_PATHS
};

enum rnl_fence { RNL_FENCE_PMI, RNL_FENCE_PMIX, RNL_FENCES };

/* ---- frames out of bytes: pure ---- */

struct rnl_reader { /* bytes [taken, end) of `at` have not been decoded yet */
    unsigned char *at;
    size_t taken, end, room, noise_bytes;
    int error; /* EPROTO: the bytes are no frame, or no greeting; ENOMEM */
};
/* Returns space for `n` further bytes; NULL = no memory, and `error` is set. */
unsigned char *rnl_reader_space(struct rnl_reader *, size_t n);
void rnl_reader_add(struct rnl_reader *, size_t n); /* n bytes have been put into that space */
void rnl_reader_free(struct rnl_reader *);          /* wipes the bytes, too, which may hold keys */

struct rnl_control_frame {
    uint32_t kind;
    size_t bytes;
    const unsigned char *body; /* valid until the next call for this reader */
};
/* Returns true and the next frame, or false if none is complete or there is an error. */
bool rnl_reader_next(struct rnl_reader *, struct rnl_control_frame *out);
/* Looks for the agent's greeting. 1 = found; 0 = not yet; -1 = it is of another release, which is put into `release`.
 * The last line before it is put into `noise`. */
int rnl_reader_greeting(struct rnl_reader *, char release[RNL_CONTROL_RELEASE_BYTES], char *noise, size_t noise_room);
/* Returns `out` with the text that must be equal on all hosts of a job, "PROTOCOL.PACKETS RELEASE". */
const char *rnl_control_release(char out[RNL_CONTROL_RELEASE_BYTES]);
void rnl_control_greet(int fd); /* writes the agent's greeting; may block */

/* ---- bodies: each unpack returns 0, or RNL_ERR_JOB or RNL_ERR_NO_MEMORY with an error record ---- */

struct rnl_pack { /* a sequence of bytes that grows; `failed`: memory ran out, and the content must not be used */
    unsigned char *at;
    size_t bytes, room;
    bool failed;
};
void rnl_pack_bytes(struct rnl_pack *, const void *at, size_t n);
void rnl_pack_free(struct rnl_pack *); /* wipes the content; leaves an empty pack */

struct rnl_unpack { /* `bad`: a read went beyond the end; all reads from then on give zeros */
    const unsigned char *at;
    size_t left;
    bool bad;
};
void rnl_unpack_bytes(struct rnl_unpack *, void *at, size_t n);
uint32_t rnl_unpack_32(struct rnl_unpack *);

struct rnl_job_host { /* its ranks are [first, first + count) */
    char name[RNL_JOB_HOST_BYTES];
    uint32_t first, count;
};
static_assert(RNL_JOB_HOST_BYTES % 4 == 0, "no padding in struct rnl_job_host");

enum rnl_job_flags {
    RNL_JOB_KEEP_GOING = 1,
    RNL_JOB_LOCAL = 2, /* the agent is a child of the launcher, which needs no signs of life */
    RNL_JOB_BIND = 4,
    RNL_JOB_ONE_MACHINE = 8, /* the hosts are namespaces of one machine: --bind core divides its cores among all */
    RNL_JOB_DATAGRAMS = 16,  /* ranks of one host use datagrams between each other, too */
    RNL_JOB_OWN_INPUT = 32,  /* rank 0 inherits the agent's standard input, and no INPUT comes */
    RNL_JOB_EXPECTED = 64,   /* ranks join by themselves */
    RNL_JOB_MPI = 128,       /* serve MPI, whatever the program is */
    RNL_JOB_EXAMINE = 256,   /* say FACTS and PATHS; no rank is started */
    RNL_JOB_RINGS = 512,     /* datagrams to other hosts go by AF_XDP where they can */
    RNL_JOB_CARDS = 1024,    /* they go by cards that ranks drive where they can */
    RNL_JOB_FLAGS = 2047
};

/* The body of JOB is the first part of this up to `at`, then `at`, then texts that end with 0: the working directory,
 * the arguments, the environment. */
struct rnl_job_spec {
    uint32_t size, host, hosts, flags, arguments, variables;
    uint64_t stopped_after_ns;               /* UINT64_MAX = never */
    uint64_t silence_ms;                     /* for ranks that ask for none of their own; 0 = the default */
    uint64_t number;                         /* at random, to tell jobs apart */
    unsigned char key[RNL_JOB_KEY_BYTES];    /* the key of the job, which ranks have, too */
    unsigned char agents[RNL_JOB_KEY_BYTES]; /* the key of datagrams between agents, which no rank has */
    struct rnl_job_host *at;                 /* all hosts */
    char *folder, **argv, **environment;     /* an empty folder: the agent's own */
};
void rnl_job_spec_pack(struct rnl_pack *, struct rnl_job_spec *); /* sets `arguments` and `variables` */
int rnl_job_spec_unpack(const void *body, size_t bytes, struct rnl_job_spec *out);
void rnl_job_spec_free(struct rnl_job_spec *); /* frees what unpack made, and wipes the keys */

/* Sent up to `address`, then so many addresses, then so many ports as it has ranks. */
void rnl_host_info_pack(struct rnl_pack *, const struct rnl_host_info *);
int rnl_host_info_unpack(struct rnl_unpack *, uint32_t hosts, const struct rnl_job_host *at, struct rnl_host_info *out);

/* Sent up to `address`, then so many addresses. */
void rnl_probe_failure_pack(struct rnl_pack *, const struct rnl_probe_failure *);
int rnl_probe_failure_unpack(struct rnl_unpack *, uint32_t hosts, struct rnl_probe_failure *out);

/* Sent up to `attempts`, then these as in PROBED. */
void rnl_path_report_pack(struct rnl_pack *, const struct rnl_path_report *);
int rnl_path_report_unpack(struct rnl_unpack *, uint32_t hosts, struct rnl_path_report *out);

struct rnl_arrivals { /* the processes that wait on a host, in the order in which they came; sent up to wanted[count] */
    uint64_t host[2]; /* a kernel and its network namespace */
    char name[RNL_JOB_HOST_BYTES];
    uint32_t count;
    int32_t wanted[RNL_JOB_RANKS_MAX]; /* the rank that each wants; -1: any */
};
void rnl_arrivals_pack(struct rnl_pack *, const struct rnl_arrivals *);
int rnl_arrivals_unpack(struct rnl_unpack *, struct rnl_arrivals *out);

struct rnl_rank_exit { /* how a rank has ended: by a signal, or with a status */
    uint32_t rank, signal, status, flags;
    uint32_t handler, stack_bytes; /* that overran its stack, as the rank said of itself; 0 bytes = none did */
};
enum rnl_exit_flags {
    RNL_EXIT_BROKEN = 1,   /* it broke the protocol of its socket, and was killed for that */
    RNL_EXIT_VANISHED = 2, /* it joined, and ended without an exit code: by a signal or _exit */
    RNL_EXIT_UNSERVED = 4  /* it ended since the system let it down, or its host is lost, which has been said */
};

static_assert(sizeof(struct rnl_job_host) == RNL_JOB_HOST_BYTES + 8, "a host of JOB");
static_assert(offsetof(struct rnl_job_spec, at) == 48 + 2 * RNL_JOB_KEY_BYTES, "the first part of JOB");
static_assert(offsetof(struct rnl_host_info, address) == 48 && sizeof(struct rnl_host_address) == 32, "HERE");
static_assert(offsetof(struct rnl_path_report, attempts) == 80, "PATHS");
static_assert(offsetof(struct rnl_probe_failure, address) == 16 && sizeof(struct rnl_probe_attempt) == 28, "PROBED");
static_assert(sizeof(struct rnl_rank_exit) == 24 && sizeof(struct rnl_word) == 40, "EXITED and WORD");

/* ---- the stream, in a loop of libuv ---- */

struct rnl_control {
    uv_pipe_t in, out; /* `out` is not used where one descriptor carries both directions */
    uv_stream_t *writer;
    struct rnl_reader reader;
    bool opened, ended;   /* ended: nothing more arrives; reader.error says whether the stream broke */
    uint32_t writes;      /* how many writes libuv has not finished */
    void (*came)(void *); /* called from the loop when bytes arrived, or the stream has ended */
    void *arg;
};
/* Takes over both descriptors, pipes or sockets, which may be the same. 0 or -errno, and then they are closed. */
int rnl_control_open(struct rnl_control *, uv_loop_t *, int in, int out, void (*came)(void *), void *arg);
/* Queue a frame; its body may have two parts. Errors are not returned: the end of the stream is found by reading. */
void rnl_control_send(struct rnl_control *, enum rnl_control_kind, const void *body, size_t bytes);
void rnl_control_send_parts(struct rnl_control *, enum rnl_control_kind, const void *first, size_t first_bytes,
                            const void *second, size_t second_bytes);
void rnl_control_send_pack(struct rnl_control *, enum rnl_control_kind, const struct rnl_pack *);
/* Closes the stream and drops what is queued. The structure must live until the loop has run once more. No effect when
 * closed, or never opened. */
void rnl_control_close(struct rnl_control *);

#endif
