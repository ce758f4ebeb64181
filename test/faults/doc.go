// Package faults injects faults into management clusters, and checks that `slipway explain` and the page of `slipway ui` name
// the object that has the cause, the cause, since when, and the remedy. The rows of its tables are the faults of a review and
// further ones: TestFaults injects those that simulated clusters can have, and TestFaultsReal those that need containers,
// processes or a disk.
package faults
