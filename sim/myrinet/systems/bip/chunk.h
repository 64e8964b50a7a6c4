/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chunk.h - what both of BIP's firmwares fetch of a long message at a time. Who includes it has `card`. */
static uint32_t ready_from[BIP_NODES]; /* receivers that have posted */

/* A packet, or what is left of the message or of the host's page. */
FIRMWARE uint32_t chunk(uint32_t at, uint32_t left, uint32_t page)
{
    uint32_t fits = page - (at & (page - 1)), n = card.send.packet;
    if (n > left)
        n = left;
    if (n > fits)
        n = fits;
    return n;
}
