package versions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Names of the files of a release, in its folder and in an archive.
const (
	manifestFile = "manifest.json"
	programFile  = "control-plane"
)

// format is the version of the manifest format. Increase it if a field changes: releases and archives with another
// format are then reported as not usable.
const format = 1

// maxManifest limits the size of a manifest.
const maxManifest = 64 << 10

// manifest describes a release, in the file manifest.json of its directory and of an archive. Other versions of Slipway
// read it, so the meaning of its fields must not change.
type manifest struct {
	Format     int    `json:"format"`
	Kubernetes string `json:"kubernetesVersion"`
	Platform   string `json:"platform"` // "linux/amd64"
	// Protocol is the revision of the interface between the program and Slipway.
	Protocol int `json:"protocol"`
	// Program is the SHA-256 checksum of the control plane's program in hexadecimal, Size its size in bytes.
	Program string `json:"programSHA256"`
	Size    int64  `json:"programSize"`
	// Slipway and Go are the versions that it was compiled with.
	Slipway string    `json:"slipwayVersion"`
	Go      string    `json:"goVersion,omitempty"`
	Added   time.Time `json:"added"`
}

// platform returns the platform of this host.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// readManifest reads the manifest in a directory.
func readManifest(dir string) (manifest, error) {
	f, err := os.Open(filepath.Join(dir, manifestFile))
	if err != nil {
		return manifest{}, err
	}
	defer func() { _ = f.Close() }()
	return parseManifest(f)
}

func parseManifest(r io.Reader) (manifest, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err != nil {
		return manifest{}, err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", manifestFile, err)
	}
	return m, nil
}

// checkRunnable returns the reason why this build of Slipway cannot run a release with the manifest, or nil. Each read
// of a release and each import call it.
func (s Store) checkRunnable(m manifest) error {
	switch {
	case m.Format != format || m.Protocol != s.Protocol:
		return fault.New(fault.Invalid, reasonOther, "Kubernetes %s was added by slipway %s, which starts it differently; remove it, and add it again", m.Kubernetes, m.Slipway)
	case m.Platform != platform():
		return fault.New(fault.Invalid, reasonPlatform, "Kubernetes %s is for %s, and this host is %s; add it on this host, or import an archive that was exported on such a host", m.Kubernetes, m.Platform, platform())
	}
	return nil
}

// checksum returns the SHA-256 of a file in hexadecimal. Adding a release records it, and each start of the program
// compares it.
func checksum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
