package upgrade

// Tests outside of the package use these private names.
const KubeadmControlPlane = kubeadmControlPlane
