package upgrade

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
)

// image is a reference to an image, as <repository>/<name>:<tag>.
type image struct{ repository, name, tag string }

// String is the reference.
func (i image) String() string {
	out := i.name + ":" + i.tag
	if i.repository != "" {
		out = i.repository + "/" + out
	}
	return out
}

// parseImage reads a reference by tag: one by digest says no version, and cannot be given another one.
func parseImage(reference string) (image, error) {
	rest, tag, _ := strings.Cut(reference[strings.LastIndex(reference, "/")+1:], ":")
	out := image{name: rest, tag: tag}
	if at := strings.LastIndex(reference, "/"); at >= 0 {
		out.repository = reference[:at]
	}
	switch {
	case strings.Contains(reference, "@"):
		return out, fmt.Errorf("image %s is referred to by digest: its version is not known", clipped(reference))
	case tag == "":
		return out, fmt.Errorf("image %s has no tag: its version is not known", clipped(reference))
	case out.String() != reference: // a slash with nothing before it
		return out, fmt.Errorf("image %s is no valid reference", clipped(reference))
	}
	return out, out.check()
}

// check says that there can be such an image.
func (i image) check() error {
	if _, err := name.NewTag(i.String()); err != nil {
		return fmt.Errorf("image %s is no valid reference", clipped(i.String()))
	}
	return nil
}

// clipped is a text of others that is part of a message.
func clipped(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// tagOf is the tag of a version: a tag has no plus.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// release is the version in a tag of CoreDNS, without what a builder of images added to it.
func release(tag string) (semver.Version, error) {
	v, err := semver.ParseTolerant(strings.Replace(tag, "_", "+", 1))
	if err != nil {
		return v, fmt.Errorf("tag %s of CoreDNS is no version", clipped(tag))
	}
	return semver.Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch}, nil
}

// inRepository is the image of CoreDNS in another repository. The registry of the Kubernetes project has it one level deeper than any
// mirror that kubeadm reads, so an image that is in the repository already keeps its path.
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

// projectDomain is where the Kubernetes project has its registries.
const projectDomain = ".k8s.io"
