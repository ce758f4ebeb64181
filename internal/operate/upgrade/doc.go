// Package upgrade changes the Kubernetes version of a cluster with a topology. [NewPlan] plans the upgrade: the versions of
// the control plane and the workers step by step, the number of nodes that are replaced, and the reasons why groups are
// held back. [Apply] sets the version. The topology controller determines the order and performs the upgrade with
// package lifecycle, which also computes this plan.
package upgrade
