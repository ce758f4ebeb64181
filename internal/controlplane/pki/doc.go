// Package pki issues and stores the certificates of a Kubernetes control plane: CAs, leaf certificates, service account
// signing keys and kubeconfig files. A [Folder] stores keys with mode 0600, and reissues a leaf certificate when a
// third of its lifetime is left, when its names or its CA have changed, or when certificate and key do not match
// ([NeedsReissue]). Package controlplane stores its certificates with a [Folder]; packages kubeadm/secrets and
// operate/rotate create Secrets with it. Controllers, the webhook server and simulated clusters issue certificates with
// [Pair.Issue].
package pki
