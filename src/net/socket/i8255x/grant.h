/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grant.h - takes a card from the kernel for a process of this host: the only part that needs privileges. Through uio
 * it writes to sysfs and asks for a physical address (CAP_SYS_ADMIN); through vfio, where an IOMMU keeps the card to
 * the memory that it was given, it opens /dev/vfio. What it makes are descriptors, which another process without any
 * privilege can be passed (SCM_RIGHTS).
 *
 * `device` is what ends the card's reach: when the last descriptor of that file is closed, by whatever death, the
 * kernel takes the bus from the card, which then writes nowhere. It is opened before the memory, and has the lower
 * number, because a dying process closes its descriptors in that order: the memory is there until the card is silent.
 * Who passes them passes `device` first, for the same reason. */
#ifndef RNL_NET_SOCKET_I8255X_GRANT_H
#define RNL_NET_SOCKET_I8255X_GRANT_H

#include <stdbool.h>
#include <stdint.h>

enum rnl_i8255x_way { RNL_I8255X_UIO = 1, RNL_I8255X_VFIO };

struct rnl_i8255x_grant {
    int device;            /* /dev/uioN, or the device of vfio */
    int registers, memory; /* registers: may be the same as `device` */
    uint64_t registers_at; /* offset in `registers` */
    uint64_t bus;          /* the card's address of the memory */
    uint32_t wire;         /* the number of its wire, from 1; rnl_i8255x_take leaves 0 */
    int line;              /* the configuration space, for whoever drives the card: uio's line is armed again there */
    int config;            /* the same; stays with who took the card */
    uint64_t config_at;
    int container, group; /* of vfio, and they stay, too; -1 = none */
};

enum { RNL_I8255X_CARDS = 4, RNL_I8255X_GRANT_FDS = 4, RNL_I8255X_SLOT_BYTES = 16 };

/* Writes into `slot` the PCI addresses of the cards of this host that are to be had, in their order, and into `way`
 * how: those that the administrator has bound to vfio-pci or uio_pci_generic, and those that no driver has. A card that
 * the kernel uses is none of them. Returns how many there are, at most RNL_I8255X_CARDS; RNL_ERR_SYSTEM: there is none,
 * and the record says what to do about it. */
int rnl_i8255x_find(char slot[RNL_I8255X_CARDS][RNL_I8255X_SLOT_BYTES], enum rnl_i8255x_way way[RNL_I8255X_CARDS]);

/* Takes the card with this PCI address (0000:00:03.0) from its driver, for as long as a descriptor is open: the card's
 * interface is gone meanwhile. 0, RNL_ERR_ARG, RNL_ERR_SYSTEM. */
int rnl_i8255x_take(const char *slot, enum rnl_i8255x_way way, struct rnl_i8255x_grant *out);
/* Gives a card that was taken its number of a wire, and leaves in its memory what whoever gets its descriptors has to
 * know. 0, RNL_ERR_SYSTEM. */
int rnl_i8255x_label(struct rnl_i8255x_grant *g, uint32_t wire);
/* Fills a grant from the descriptors device, registers, line and memory of a card that was labelled, which stay the
 * caller's. 0, RNL_ERR_SYSTEM (they are none of a card). */
int rnl_i8255x_adopt(const int fd[RNL_I8255X_GRANT_FDS], struct rnl_i8255x_grant *out);
/* Takes the bus from the card, whoever still has descriptors of it, and closes these ones. */
void rnl_i8255x_give_back(struct rnl_i8255x_grant *g);

#endif
