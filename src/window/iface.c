/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.c - registers windows as an interface (base/iface.h), for their counters and their part of `runnel info`. */
#include "window/window_internal.h"

static const struct rnl_counter_text counters[] = {
    [WINDOW_OFFERS] = {"offers", "windows that are offered to peers now"},
    [WINDOW_IMPORTS] = {"imports", "windows of peers that are imported now"},
    [WINDOW_PUTS] = {"puts", "puts to peers, without those of one word into a direct window"},
    [WINDOW_NOTES_RUN] = {"notifications", "notifications of puts that were run"},
    [WINDOW_REFUSED] = {"refused", "puts and other accesses of peers to what was not granted to them, or no more"},
    [WINDOW_WAITS_FOR] = {"waits_for",
                          "what a call awaits now: 1 put, 2 get, 3 atomic, 4 quiet, 5 import, 6 revoke; 0 = nothing"},
    [WINDOW_WAITS_AT] = {"waits_at", "1 + the rank that it awaits that of"},
    [WINDOW_WAITS_SINCE] = {"waits_since_ns", "start of that wait, CLOCK_MONOTONIC"},
    [WINDOW_COUNTERS] = {NULL, NULL},
};
static const struct rnl_iface_row info[] = {
    {"interface", "windows", 0, "runnel/window.h"},
    {"waiting notifications", NULL, WINDOW_NOTES, "of an endpoint, before their senders are held up"},
    {NULL, NULL, 0, NULL},
};

const struct rnl_iface rnl_window_iface = {
    .name = "window",
    .counters = counters,
    .info = info,
};
