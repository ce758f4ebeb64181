// Package faults injects faults into simulated clusters of a real management cluster, and checks that `slipway explain`
// and the page of `slipway ui` name the object that has the cause, the cause, since when, and the remedy. The rows of its
// tables are the faults of a review and further ones; a row without a simulation has the reason.
package faults
