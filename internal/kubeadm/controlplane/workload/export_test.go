package workload

// Tests outside of the package use these private names.
const APIServer = apiServerPod
