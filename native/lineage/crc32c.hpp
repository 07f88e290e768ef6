// CRC-32C (Castagnoli), reflected polynomial 0x82F63B78, as in iSCSI (RFC 3720, B.4).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace burnish::lineage {

// Extends the checksum `crc` of what came before (0 at the start) by `data`. Uses SSE4.2 where the processor has it.
uint32_t crc32c(std::span<const std::byte> data, uint32_t crc = 0);

// The same by tables, on any processor.
uint32_t crc32c_table(std::span<const std::byte> data, uint32_t crc = 0);

}  // namespace burnish::lineage
