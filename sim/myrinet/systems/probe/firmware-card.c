/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfers as a card's own program sees them: one behind the other from the first request on, with no host between
 * two of them; a word to the host tells of each PROBE_TOLD. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/probe/layout.h"

volatile struct probe_card card;

void fw_main(void);
void fw_main(void)
{
    uint32_t untold = 0;
    for (;;) {
        uint32_t status = nic_read(ISR);
        if (!card.go || !(status & HDONE))
            continue;
        if (untold == PROBE_TOLD) {
            untold = 0;
            card.count += PROBE_TOLD;
            nic_dma(card.status_at, SRAM_AT(&card.count), TO_HOST, 4);
            continue;
        }
        nic_dma(card.host, SRAM_AT(card.buffer), FROM_HOST, card.bytes);
        untold++;
    }
}
