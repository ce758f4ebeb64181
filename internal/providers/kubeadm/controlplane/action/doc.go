// Package action is what the controller of KubeadmControlPlanes can do.
//
// Does: names each action and question of a plan, with why it is done.
//
// Never: carries one out; the controller does.
//
// Read first: [CreateMachine].
package action
