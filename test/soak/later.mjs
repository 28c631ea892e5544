// Loaded before a gateway: its clock is advanced, so that the leases of killed processes expire at once.
const aheadMs = Number(process.env.SOAK_AHEAD_MS)
const machineNow = Date.now
Date.now = () => machineNow() + aheadMs
