// Package action defines the actions and questions in the plans of the KubeadmControlPlane controller. The String
// methods describe an action and its reason. The controller executes the actions.
package controlplane
