/* SPDX-License-Identifier: BSD-3-Clause
 *
 * door.h - where workers that a spawner started come together, before there is a launcher. Each host has one door: the
 * master's own, and on other hosts that of a *porter*, a process that the first worker there leaves behind. Workers
 * knock at the local one, an abstract socket:
 *
 *   worker to door     'w' | wanted rank 4 (-1 = any)
 *   door to worker     'l' | first rank 4 | ranks 4     the launcher starts stand-ins of these on this host (place.h)
 *                      'x' | sentence                   there will be none
 *   worker to door     't'                              it has taken its place: from now on the stand-in sees to it
 *
 * Porters come to the master's, and the launcher's way to a host (amudprun_reach.c) to all, by channels (channel.h)
 * over TCP:
 *
 *   porter to master   'h' | port 2 | name of the host  its door
 *                      'w' | wanted rank 4              a worker has come
 *                      'g' | wanted rank 4              ... and gone
 *                      'm' | wanted rank 4              ... and gone when it had been told 'l', without a place
 *   master to porter   'l', 'x' as above
 *   way to door        'c' | command                    execute it: its input and output are the channel from now on
 *   each to each       'i' 'o' 'e' | bytes              input, output, errors; no bytes: their end
 *   door to way        'q' | status 4                   it has ended
 *
 * A porter ends when its master does and when the commands that it has executed have ended. */
#ifndef RNL_AMUDP_DOOR_H
#define RNL_AMUDP_DOOR_H

#include "amudp/place.h"
#include "job/channel.h"

/* Callers by TCP have PATIENCE to prove themselves. UNPROVEN of them are listened to at a time, the others wait until
 * one has, or has been given HURRY and makes room. */
enum {
    RNL_DOOR_UNPROVEN = 64,
    RNL_DOOR_HURRY_MS = 2000,
    RNL_DOOR_PATIENCE_MS = RNL_CHANNEL_PATIENCE_MS,
    RNL_DOOR_ADDRESS = 64,
    RNL_DOOR_HOST = 256
};

enum rnl_door_worker { RNL_DOOR_SILENT, RNL_DOOR_KNOCKED, RNL_DOOR_TOLD, RNL_DOOR_PLACED };
enum rnl_door_event { RNL_DOOR_COME, RNL_DOOR_GONE, RNL_DOOR_MISSING /* gone, and its place is waiting */ };

struct rnl_door_guest { /* a worker, or a channel */
    int fd;             /* worker; -1 */
    enum rnl_door_worker state;
    int wanted;
    struct rnl_channel *channel;
    uint64_t since_ms;
    int host; /* the master's: of the porter */
};
struct rnl_door {
    unsigned char key[RNL_PLACE_KEY];
    int local, tcp;
    uint16_t port;
    struct rnl_door_guest *guest;
    size_t guests, room;
    /* What comes of them. `worker`: of one here. `message`: of a channel that has proven itself; the type -1: it has
     * ended. */
    void (*worker)(void *ctx, int wanted, enum rnl_door_event event);
    void (*message)(void *ctx, struct rnl_door_guest *from, int type, const unsigned char *text, size_t bytes);
    void *ctx;
};

/* Opens the local one. 0; 1 = this host has such a door; -1, and errno. */
int rnl_door_open(struct rnl_door *d, const char *name);
/* ... and that of TCP, at a numeric address (NULL: at all of the host). 0; -1 and errno. */
int rnl_door_listen(struct rnl_door *d, const char *address);
void rnl_door_close(struct rnl_door *d);
/* Takes in who comes and what they say; waits for that as long. `also` (-1 = none): returns when it can be read. */
void rnl_door_turn(struct rnl_door *d, int ms, int also);
/* Nobody else can knock here from now on; who has knocked already is still met. */
void rnl_door_shut(struct rnl_door *d);
/* Tells all workers here. */
void rnl_door_tell(struct rnl_door *d, int type, const void *text, size_t bytes);
/* fork(2), and the child has none of this process's handlers, nor signals that are blocked or ignored. */
pid_t rnl_amudp_fork(void);
/* Milliseconds of a clock that only goes on. */
uint64_t rnl_door_ms(void);
/* A numeric address as text: of the other side, or ours. 0 or -1. */
int rnl_door_address(int fd, int ours, char out[RNL_DOOR_ADDRESS]);

/* A worker's knock at its host's door; if there is none, it leaves a porter. The socket, or -1 and said. */
int rnl_amudp_knock(const char *name, const char *file, const unsigned char key[RNL_PLACE_KEY], int wanted);
/* A connection to a numeric address; -1 and errno. And a channel on it, which owns fd; NULL: there is no such door. */
int rnl_amudp_call(const char *address, const char *port);
struct rnl_channel *rnl_amudp_channel_to(int fd, const unsigned char key[RNL_PLACE_KEY]);
/* The door of a host that is not the master's: never returns. */
_Noreturn void rnl_amudp_porter(struct rnl_door *d, const char *file);

/* ---- gather.c: the master's side ---- */
/* A place of a job, its door open, and the file written. 0, or -1 and said. */
int rnl_amudp_gather_open(struct rnl_door *d, struct rnl_amudp_place *place);
/* Waits for nproc workers; `stop` says between two looks whether there is a reason not to. hosts: what `runnel run
 * --hosts` is to be told, and how it gets there is in RUNNEL_SSH; empty: all are here. Free it. NULL: stopped, or said,
 * to the workers too. */
char *rnl_amudp_gather_workers(struct rnl_door *d, const struct rnl_amudp_place *place, int nproc, int (*stop)(void));
/* Later: why the job cannot be, a worker having ended on its way to its place; NULL: it can. */
const char *rnl_amudp_gather_trouble(void);

#endif
