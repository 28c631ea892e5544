// Loaded before a gateway: its clock runs ahead, so that nobody waits for the leases that killed processes left behind.
const aheadMs = Number(process.env.SOAK_AHEAD_MS)
const machineNow = Date.now
Date.now = () => machineNow() + aheadMs
