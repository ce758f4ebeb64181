package remote

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
)

//go:embed files/*
var nodeFiles embed.FS

const (
	// reasonInvalidSettings means that a proxy or a registry mirror cannot be used; the kind is Invalid.
	reasonInvalidSettings = "InvalidHostSettings"
	// reasonFileExists means that preparing the host would overwrite a file that Slipway did not install; the kind is
	// Invalid.
	reasonFileExists = "FileExists"
	// prepareTimeout includes importing the container images on a slow disk.
	prepareTimeout = 5 * time.Minute
	// exitFileExists is the exit status of a script that found a file that it would overwrite.
	exitFileExists = 4
	// Limits of settings.
	maxMirrors = 16
	maxSetting = 2048
)

// NodeSettings are settings of a host and of the machine that uses it. The SSHMachine controller merges them.
type NodeSettings struct {
	// HTTPProxy, HTTPSProxy and NoProxy apply to image pulls.
	HTTPProxy, HTTPSProxy, NoProxy string
	// RegistryMirrors are URLs that are tried in order for the images of every registry.
	RegistryMirrors []string
	// TrustedCAs are PEM certificates that containerd trusts in addition to the host's.
	TrustedCAs []byte
}

// Hash identifies the settings, empty for none. The SSHMachine controller prepares a host again if it changes.
func (s NodeSettings) Hash() string {
	if s.HTTPProxy+s.HTTPSProxy+s.NoProxy == "" && len(s.RegistryMirrors) == 0 && len(s.TrustedCAs) == 0 {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", s.HTTPProxy, s.HTTPSProxy, s.NoProxy, s.RegistryMirrors, s.TrustedCAs))
	return hex.EncodeToString(sum[:])
}

// PrepareNode makes the host ready for kubeadm: it links the bundle, which must be installed, writes the units and
// settings of containerd and the kubelet, starts containerd and imports the container images. It may be repeated; containerd is
// restarted if its settings have changed. No file that exists is overwritten, unless Slipway installed it. The job of
// the SSHMachine controller calls it after [Host.InstallBundle].
func (h *Host) PrepareNode(ctx context.Context, b bundle.Bundle, s NodeSettings) error {
	facts, err := h.Facts(ctx)
	if err != nil {
		return err
	}
	archive, err := nodeArchive(b, s, facts.CgroupVersion)
	if err != nil {
		return err
	}
	claim, err := h.claimParameter()
	if err != nil {
		return err
	}
	_, err = h.run(ctx, call{script: "node-prepare", parameters: []parameter{claim, {"DIGEST", b.Digest}}, input: archive, timeout: prepareTimeout})
	var failed *scriptError
	if errors.As(err, &failed) && failed.code == exitFileExists {
		return fault.New(fault.Invalid, reasonFileExists, "host %s has files that Slipway did not install and would overwrite: %s; remove them, or use the programs that are installed (spec.bundle: None)", h.target.Address, failed.errors)
	}
	if err = claimConflict(h.target, err); err != nil {
		return fmt.Errorf("preparing the node: %w", err)
	}
	return nil
}

// nodeFile is a file to write on a host. [Host.PrepareNode] and [Host.ConfigureVirtualIP] send such files in an
// archive.
type nodeFile struct {
	path    string
	mode    int64
	content []byte
	link    string
}

// nodeArchive returns the files of a node as a tar archive for its root directory.
func nodeArchive(b bundle.Bundle, s NodeSettings, cgroupVersion int) ([]byte, error) {
	files, err := fixedFiles(b.PauseImage, cgroupVersion)
	if err != nil {
		return nil, err
	}
	settings, err := s.files()
	if err != nil {
		return nil, err
	}
	return tarArchive(append(files, settings...))
}

// fixedFiles returns the files that do not depend on settings.
func fixedFiles(pause string, cgroupVersion int) ([]nodeFile, error) {
	driver, systemd := "systemd", "true"
	if cgroupVersion == 1 {
		driver, systemd = "cgroupfs", "false"
	}
	replace := strings.NewReplacer("@PAUSE@", pause, "@CGROUP_DRIVER@", driver, "@SYSTEMD_CGROUP@", systemd)
	var out []nodeFile
	for _, f := range []struct {
		name, path string
		mode       int64
	}{
		{"containerd.service", "etc/systemd/system/containerd.service", 0o644},
		{"kubelet.service", "etc/systemd/system/kubelet.service", 0o644},
		{"10-kubeadm.conf", "etc/systemd/system/kubelet.service.d/10-kubeadm.conf", 0o644},
		{"containerd.toml", "etc/containerd/config.toml", 0o644},
		{"kubelet.yaml", "etc/slipway/kubelet.conf.d/90-host.conf", 0o644},
		{"sysctl.conf", "etc/sysctl.d/90-slipway.conf", 0o644},
		{"modules.conf", "etc/modules-load.d/slipway.conf", 0o644},
		{"kubeadm", "usr/local/bin/kubeadm", 0o755},
	} {
		text, err := nodeFiles.ReadFile("files/" + f.name)
		if err != nil {
			return nil, err
		}
		out = append(out, nodeFile{path: f.path, mode: f.mode, content: []byte(replace.Replace(string(text)))})
	}
	for _, name := range []string{"kubelet", "ctr"} {
		out = append(out, nodeFile{path: "usr/local/bin/" + name, link: "/var/lib/slipway/current/bin/" + name})
	}
	return out, nil
}

// files returns the files for the settings.
func (s NodeSettings) files() (out []nodeFile, err error) {
	var environment strings.Builder
	for _, v := range []struct{ name, value string }{{"HTTP_PROXY", s.HTTPProxy}, {"HTTPS_PROXY", s.HTTPSProxy}, {"NO_PROXY", s.NoProxy}} {
		if v.value == "" {
			continue
		}
		if v.name != "NO_PROXY" {
			if err := checkURL(v.value); err != nil {
				return nil, err
			}
		}
		if len(v.value) > maxSetting || strings.ContainsFunc(v.value, isUnsafe) {
			return nil, fault.New(fault.Invalid, reasonInvalidSettings, "the value of %s contains a space, a quote or a control character, or is longer than %d bytes", v.name, maxSetting)
		}
		fmt.Fprintf(&environment, "Environment=\"%s=%s\"\n", v.name, strings.ReplaceAll(v.value, "%", "%%"))
	}
	if environment.Len() > 0 {
		out = append(out, nodeFile{path: "etc/systemd/system/containerd.service.d/10-proxy.conf", mode: 0o600, content: []byte("[Service]\n" + environment.String())})
	}
	if len(s.RegistryMirrors) > maxMirrors {
		return nil, fault.New(fault.Invalid, reasonInvalidSettings, "there are %d registry mirrors, at most %d are allowed", len(s.RegistryMirrors), maxMirrors)
	}
	var mirrors strings.Builder
	for _, m := range s.RegistryMirrors {
		if err := checkURL(m); err != nil {
			return nil, err
		}
		fmt.Fprintf(&mirrors, "[host.\"%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", m)
	}
	if mirrors.Len() > 0 {
		out = append(out, nodeFile{path: "etc/containerd/certs.d/_default/hosts.toml", mode: 0o644, content: []byte(mirrors.String())})
	}
	if len(bytes.TrimSpace(s.TrustedCAs)) > 0 {
		out = append(out, nodeFile{path: "etc/slipway/authorities/trusted.crt", mode: 0o644, content: s.TrustedCAs})
	}
	return out, nil
}

// isUnsafe reports whether a character could end a quoted value of a unit or a TOML string.
func isUnsafe(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r == '\\' || r >= 0x7f }

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || len(text) > maxSetting || strings.ContainsFunc(text, isUnsafe) {
		return fault.New(fault.Invalid, reasonInvalidSettings, "%.80q is not an http or https URL", text).From(err)
	}
	return nil
}

// tarArchive returns files as a tar archive, sorted by path. Directories are not part of it.
func tarArchive(files []nodeFile) ([]byte, error) {
	slices.SortFunc(files, func(a, b nodeFile) int { return strings.Compare(a.path, b.path) })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0), Format: tar.FormatGNU}
		if f.link != "" {
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.link, 0o777
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
