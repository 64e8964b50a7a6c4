/* SPDX-License-Identifier: BSD-3-Clause
 *
 * address_probe.h - finds, before the ranks start, by which addresses the hosts of a job reach each other; and carries,
 * while they run, the agents' liveness attestations over that same network. In a job below PMIx the lowest rank of each
 * host probes, and nobody attests. Of each pair, the host with the lower number sends requests to all addresses of the
 * other at once; those that do not work do not reply.
 *
 *   REQUEST  a short and a long datagram to each address
 *   REPLY    the reply to the source of a REQUEST, of the same length
 *   CHOSEN   to the first address whose long REPLY came from the address asked, so both directions work. It is
 *            accepted only from an address that its host has listed, since this host's datagrams will go there
 *   AGREED   the other host will use the source of CHOSEN. It is accepted only from the address that was chosen
 *   ALIVE    every 7 s: a bit for each rank of the sender's host that lives and is not stopped. `which` is 1 if the
 *            last ALIVE from the receiver is recent, so that both directions work; `nonce` counts them
 *   MEASURE  `runnel doctor` only, between addresses that are agreed: a datagram of a measurement (path_measure.h),
 *            whose number is `which`; of any length
 *   ECHO     the short reply to MEASURE: the same `which` and `nonce`, and in `bits` what of the train came so far
 *
 * Datagrams are little-endian. Their tag is made with a key that the launcher draws and sends over the control stream
 * to agents only: ranks, which have the job's key, cannot forge them. Below PMIx it is the key of the job. A datagram
 * with another tag is dropped.
 *
 *   0      4      8      12     16      20    24      32      48
 *   +------+------+------+------+-------+-----+-------+-------+------------------------------+
 *   | RNLQ | kind | from | to   | which | 0   | nonce | tag   | bits; zeros up to its length |
 *   +------+------+------+------+-------+-----+-------+-------+------------------------------+
 *
 * The functions take the time as an argument. */
#ifndef RNL_PROBE_ADDRESS_PROBE_H
#define RNL_PROBE_ADDRESS_PROBE_H

#include "base/env.h"
#include "net/probe/path_measure.h"
#include "net/socket/socket.h"
#include "net/wire/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_HOST_PROBE_SHORT_BYTES = 64,
    RNL_HOST_PROBE_LONG_BYTES = 1200, /* what flows begin with (net/flow/flow.c) */
    RNL_HOST_PROBE_ATTEST_EVERY_S = 7,
    RNL_HOST_CARDS_MAX = 4,
    RNL_HOST_ADDRESSES_MAX = 32, /* addresses of a host that are probed */
    RNL_HOST_PROBE_GIVE_UP_MS = 7000
};

struct rnl_host_address {
    uint8_t ip[16]; /* an IPv6 address, or an IPv4-mapped one */
    char interface[16];
};
struct rnl_host_info { /* the addresses and ports of a host */
    uint32_t host, addresses, ranks;
    uint16_t probe_port, reserved;
    uint64_t kernel;                     /* equal for hosts that are namespaces of one kernel; 0 = not known */
    uint8_t card[RNL_HOST_CARDS_MAX][6]; /* hardware addresses of cards that its ranks drive, by wire; zeros = none */
    struct rnl_host_address address[RNL_HOST_ADDRESSES_MAX];
    uint16_t port[RNL_JOB_RANKS_MAX]; /* the UDP port of each of its ranks; the probe does not look at it */
};

struct rnl_probe_failure { /* how the probe of a host failed */
    uint32_t other;        /* the host that could not be reached */
    uint32_t heard;        /* 1 = a datagram arrived from it */
    uint32_t asked;        /* 1 = this host sent the requests of the pair; 0 = the other did */
    uint32_t addresses;    /* how many entries of `address` are valid */
    struct rnl_probe_attempt {
        uint8_t ip[16];
        uint16_t port;
        uint8_t only_short;      /* 1 = short datagrams came back, long ones did not */
        uint8_t other_source;    /* 1 = the reply came from another address */
        uint8_t from_own_kernel; /* 1 = the error is of the host itself, not of one on the path */
        uint8_t works;           /* 1 = a long datagram came by it, or back */
        uint8_t reserved[2];
        int32_t sys_errno; /* the kernel's last error, 0 = none */
    } address[RNL_HOST_ADDRESSES_MAX];
};

struct rnl_path_report { /* what a host has seen of the path to another one */
    uint32_t agreed;     /* 1 = both know an address of the other that works */
    uint8_t ip[16];      /* the address of the other that was chosen */
    struct rnl_path_result result;
    struct rnl_probe_failure attempts; /* of all its addresses, also if the path works */
};

struct rnl_host_probe;

/* Makes the socket of a probe from `fd`, which it owns if it succeeds, and at which all arrivals can be waited for.
 * Returns what rnl_kernel_socket_adopt returns. */
int rnl_host_probe_adopt(int fd, struct rnl_socket **out);
/* Makes a probe. The caller keeps `info`, by host, and must not free it before the probe; the probe owns `socket` if
 * this succeeds. 0, RNL_ERR_NO_MEMORY. */
int rnl_host_probe_new(uint32_t host, uint32_t hosts, const struct rnl_host_info *info,
                       const unsigned char key[RNL_JOB_SECRET], uint64_t nonce, struct rnl_socket *socket,
                       uint64_t now_ns, struct rnl_host_probe **out);
/* Has a new probe measure the paths to all hosts, too, in the direction away from this one, once they are agreed. It
 * gives up hosts that do not answer after `give_up_ns`, and asks addresses that do not work until then. 0,
 * RNL_ERR_NO_MEMORY. */
int rnl_host_probe_measure(struct rnl_host_probe *, uint64_t give_up_ns);
/* Returns what was seen of the path to `other`, of a probe that measures. */
void rnl_host_probe_report(const struct rnl_host_probe *, uint32_t other, struct rnl_path_report *out);
void rnl_host_probe_free(struct rnl_host_probe *);
/* To be called when the socket is readable, and at the deadline. */
void rnl_host_probe_step(struct rnl_host_probe *, uint64_t now_ns);
uint64_t rnl_host_probe_deadline_ns(const struct rnl_host_probe *); /* UINT64_MAX = none */
/* Whether every pair with this host has an address, and is measured, or the time to try is over. Steps still reply to
 * others then. */
bool rnl_host_probe_done(const struct rnl_host_probe *);
/* Returns true and the IP address by which `other` is reached, or false. */
bool rnl_host_probe_address(const struct rnl_host_probe *, uint32_t other, uint8_t ip[16]);
/* Returns how many alternate addresses of `other` are in `ip`, at most `max`: first those that work now, then others if
 * they belong to other interfaces; none that this host has, too. */
unsigned rnl_host_probe_alternates(const struct rnl_host_probe *, uint32_t other, uint8_t (*ip)[16], unsigned max);
/* Returns true and how the probe of `other` failed, or false if it is reached. */
bool rnl_host_probe_failed(const struct rnl_host_probe *, uint32_t other, struct rnl_probe_failure *out);

/* Sends ALIVE to all other hosts, at all their addresses that work: `bits` says which of this host's ranks live. */
void rnl_host_probe_attest(struct rnl_host_probe *, const unsigned char *bits, size_t bytes, uint64_t now_ns);
/* Returns true, a host, the bits of its last ALIVE, and when that host had last heard this one, so that both directions
 * worked; or false if there is no new one. Those that came while only one direction works do not count. */
bool rnl_host_probe_attested(struct rnl_host_probe *, uint32_t *host, unsigned char *bits, size_t bytes,
                             uint64_t *when_ns);

/* Writes a sentence: that `asker` does not reach `other` in this way, what was seen, and the likely cause; or, if the
 * attempt is NULL, that there was no address to try. `heard`: the other host has heard of the asker. */
void rnl_probe_describe(const struct rnl_host_info *other_info, const struct rnl_probe_attempt *, bool heard,
                        const char *asker, const char *other, char *out, size_t room);
/* Writes for one who wants to mend it what is to be done, and who can do it, in `room` bytes each. Returns a word
 * for the kind of fault: "firewall", "one way", "mtu", "route". */
const char *rnl_probe_remedy(const struct rnl_probe_attempt *, bool heard, const char *asker, const char *other,
                             char *remedy, char *ask, size_t room);
bool rnl_is_loopback(const uint8_t ip[16]);

/* ---- this host ---- */

/* Lists the addresses of the interfaces that are up, at most `max`, those of the loopback interface last. Link-local
 * ones are left out, since they mean nothing on another host. Returns their number, or RNL_ERR_SYSTEM. */
int rnl_host_addresses(struct rnl_host_address *out, unsigned max);
/* Returns a number that the kernel drew when it booted, equal in all its namespaces; 0 = not known. */
uint64_t rnl_host_kernel(void);

#endif
