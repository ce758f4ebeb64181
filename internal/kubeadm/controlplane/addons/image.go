package addons

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
)

// image is an image reference of the form <repository>/<name>:<tag>. The upgrades of kube-proxy and CoreDNS change its
// tag and repository. References come from objects that users of the workload cluster can write, so they are validated
// and clipped in messages.
type image struct{ repository, name, tag string }

// String returns the image reference.
func (i image) String() string {
	out := i.name + ":" + i.tag
	if i.repository != "" {
		out = i.repository + "/" + out
	}
	return out
}

// parseImage parses a reference by tag. A reference by digest contains no version and cannot be changed to another one.
// The plans of both upgrades call it for the current image.
func parseImage(reference string) (image, error) {
	rest, tag, _ := strings.Cut(reference[strings.LastIndex(reference, "/")+1:], ":")
	out := image{name: rest, tag: tag}
	if at := strings.LastIndex(reference, "/"); at >= 0 {
		out.repository = reference[:at]
	}
	switch {
	case strings.Contains(reference, "@"):
		return out, fmt.Errorf("image %s is referred to by digest: its version is unknown", clipped(reference))
	case tag == "":
		return out, fmt.Errorf("image %s has no tag: its version is unknown", clipped(reference))
	case out.String() != reference: // a slash without a repository
		return out, fmt.Errorf("image %s is not a valid reference", clipped(reference))
	}
	return out, out.check()
}

// check returns an error if the reference is invalid.
func (i image) check() error {
	if _, err := name.NewTag(i.String()); err != nil {
		return fmt.Errorf("image %s is not a valid reference", clipped(i.String()))
	}
	return nil
}

// clipped returns external text quoted and truncated for a message.
func clipped(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// tagOf returns the image tag of a version. Tags cannot contain a plus sign. The plan of the kube-proxy upgrade calls
// it.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// release returns the CoreDNS version in a tag, without additions of the image builder. The plan of the CoreDNS upgrade
// calls it.
func release(tag string) (semver.Version, error) {
	v, err := semver.ParseTolerant(strings.Replace(tag, "_", "+", 1))
	if err != nil {
		return v, fmt.Errorf("tag %s of CoreDNS is not a version", clipped(tag))
	}
	return semver.Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch}, nil
}

// inRepository returns the image of CoreDNS in another repository. In the registry of the Kubernetes project, the
// image is one level deeper than in other repositories supported by kubeadm. An image that is already in the
// repository retains its path. The plan of the CoreDNS upgrade calls it.
func (i image) inRepository(repository string) image {
	repository = strings.TrimSuffix(repository, "/")
	if repository == "" || i.repository == repository || i.repository == repository+"/"+dnsName {
		return i
	}
	i.repository, i.name = repository, dnsName
	if host, path, _ := strings.Cut(repository, "/"); path == "" && strings.HasSuffix(host, projectDomain) {
		i.repository += "/" + dnsName
	}
	return i
}

// projectDomain is the domain of the registries of the Kubernetes project.
const projectDomain = ".k8s.io"
