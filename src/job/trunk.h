/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trunk.h - what the launcher and the agents of a job's hosts say to each other, over the two pipes that lead to a
 * process (its standard input and output), with ssh between them or not, and over a connection of TCP (back.h) when
 * those fail. It stands on bytes alone. Part of the `runnel` command.
 *
 * An agent greets with a line of text, whatever a login shell may have said before it:
 *
 *   runnel-agent PROTOCOL.PACKETS RELEASE\n        PACKETS is the version of what ranks say to other hosts' ranks
 *
 * and both sides speak in frames from then on. Numbers are little-endian.
 *
 *   0      2      4             8
 *   +------+------+-------------+--- body
 *   | kind | host | bytes, body |
 *   +------+------+-------------+
 *   host: down, the host that it is for, which may be behind the one that reads it, or 65535: that one and all behind
 *   it. Up, the host that says it. An agent passes on what is for or from those behind it, as it is (job/branch.h).
 *   down: those marked with * are for all
 *   JOB       what is to be done: job/brief.h
 *   HOSTS  *  where every host is (job/brief.h); each tries each (job/search.h)
 *   GO     *  start the ranks
 *   SIGNAL *  signal 4
 *   WORD   *  kind 4, rank 4, other 4, why 4, detail 4, wave 8, activity 8 (job/agent.h)
 *   INPUT     bytes for rank 0; none: the end
 *   ROOM      which 4, bytes 8: so much more output may come; 0 = its reader is gone
 *   PING   *
 *   DROP      host 4: end what you have started there, it is not heard any more
 *   END    *  all is done
 *   up
 *   HERE      where this host is: job/brief.h
 *   PROBED    what came of it: job/brief.h
 *   WORD
 *   EXITED    rank 4, signal 4, status 4, flags 4
 *   FINISHED  rank 4: and its output has been passed on
 *   SAY       text: a line for standard error
 *   FAIL      exit status 4, text: this host cannot go on, and why, in one frame: of all hosts' the first ends the job,
 *             and is all that is said
 *   LOST      text: said for it by who started its agent, which is gone, and why
 *   OUTPUT    which 4, bytes
 *   TAKEN     bytes 8: so much more input may come; 0 = rank 0 reads no more
 *   DONE      no rank of it is left, and all its output has been passed on
 *   PONG
 *   between neighbours, for which other connections may follow (job/back.h)
 *   ACK       bytes 8: so many bytes of frames have been taken in */
#ifndef RNL_JOB_TRUNK_H
#define RNL_JOB_TRUNK_H

#include "job/channel.h"
#include "job/pack.h"
#include "job/resend.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RNL_TRUNK_VERSION = 6,
    RNL_FRAME_HEAD = 8,
    RNL_FRAME_MAX = 16 << 20, /* JOB carries an environment */
    RNL_NOISE_MAX = 1 << 16,  /* before the greeting */
    RNL_INPUT_ROOM = 65536,   /* what may be sent from the beginning */
    RNL_OUTPUT_ROOM = 1 << 18,
    RNL_ACK_BYTES = 32768, /* are taken in before an acknowledgement; PING and PONG have one in any case */
    RNL_FRAME_TO_ALL = UINT16_MAX
};

enum rnl_frame_kind {
    RNL_FRAME_JOB = 1,
    RNL_FRAME_HOSTS,
    RNL_FRAME_GO,
    RNL_FRAME_SIGNAL,
    RNL_FRAME_WORD,
    RNL_FRAME_INPUT,
    RNL_FRAME_ROOM,
    RNL_FRAME_PING,
    RNL_FRAME_DROP,
    RNL_FRAME_END,
    RNL_FRAME_HERE = 32,
    RNL_FRAME_PROBED,
    RNL_FRAME_EXITED,
    RNL_FRAME_FINISHED,
    RNL_FRAME_SAY,
    RNL_FRAME_FAIL,
    RNL_FRAME_LOST,
    RNL_FRAME_OUTPUT,
    RNL_FRAME_TAKEN,
    RNL_FRAME_DONE,
    RNL_FRAME_PONG,
    RNL_FRAME_ACK = 64
};

/* ---- the stream ---- */

struct rnl_trunk {
    int in, out;                 /* non-blocking; -1 = closed */
    struct rnl_channel *channel; /* instead of pipes: `in` is its socket, `out` another descriptor of that */
    uint32_t host;               /* who speaks, in what is sent up */
    unsigned char *read;
    size_t got, read_room, taken; /* [taken, got) of read is not looked at yet */
    struct rnl_resend kept;       /* what is to be written, and what may have to be written again */
    size_t noise;                 /* bytes of what came before the greeting */
    uint8_t greeted;              /* what arrives are frames */
    uint8_t ended;                /* nothing more can arrive, on this connection */
    uint8_t mute;                 /* nothing more can leave on it */
    int error;                    /* errno of what ended it; EPROTO: what came is no frame; ENOMEM */
};
/* Takes both over, which are the same perhaps, and makes them non-blocking. 0 or -errno. */
int rnl_trunk_open(struct rnl_trunk *, int in, int out);
/* From the first frame each way: what leaves is kept until it is acknowledged, so that another connection may follow.
 */
void rnl_trunk_keep(struct rnl_trunk *);
/* This connection is over, or to be over: another may follow. */
int rnl_trunk_may_go_on(const struct rnl_trunk *);
/* Goes on over this channel, which is open, and the trunk's from then on in any case. Each side has told the other how
 * many bytes it had taken in (kept.taken): `theirs`. 0; -1: that cannot be, and the trunk has ended. Where descriptors
 * are short it returns 0 and has cut it: `ended`. */
int rnl_trunk_go_on(struct rnl_trunk *, struct rnl_channel *, uint64_t theirs);
/* How many bytes have been taken in, of the connection that is over: what was read beyond that comes again. */
uint64_t rnl_trunk_taken(struct rnl_trunk *);
/* Closes the connection, and keeps the rest. */
void rnl_trunk_cut(struct rnl_trunk *);
void rnl_trunk_close(struct rnl_trunk *);

/* Queues a frame and writes what can be written. Nothing is said when that fails: the other side's end shows itself
 * to who reads. `host`: see above; else it is the trunk's. */
void rnl_trunk_send_to(struct rnl_trunk *, enum rnl_frame_kind kind, uint32_t host, const void *body, size_t bytes);
void rnl_trunk_send(struct rnl_trunk *, enum rnl_frame_kind kind, const void *body, size_t bytes);
void rnl_trunk_send_pack(struct rnl_trunk *, enum rnl_frame_kind kind, const struct rnl_pack *);
void rnl_trunk_flush(struct rnl_trunk *);
int rnl_trunk_waits(const struct rnl_trunk *); /* for room to write */

/* Reads what is there. */
void rnl_trunk_read(struct rnl_trunk *);
struct rnl_frame {
    uint32_t kind, host;
    size_t bytes;
    const unsigned char *body; /* until the next call */
};
/* 1 = *out is the next one, 0 = none is whole. */
int rnl_trunk_next(struct rnl_trunk *, struct rnl_frame *out);

/* The agent's first word. */
void rnl_trunk_greet(struct rnl_trunk *);
/* Looks for it. 1 = it has come; 0 = not yet; -1: another release's, which is in `release`. What came before it is
 * left out, but for its last line, which is in `noise`. */
int rnl_trunk_greeting(struct rnl_trunk *, char *release, size_t room, char *noise, size_t noise_room);

#endif
