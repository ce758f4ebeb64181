package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

const (
	// bundlesPath is the directory with the bundles. The scripts contain it, too.
	bundlesPath = "/var/lib/slipway/bundles"
	// chunk is the size of the pieces of an upload. Within a piece, packets are written in any order.
	chunk = 4 << 20
	// reasonBundleDamaged means that a file did not arrive as it was sent; the kind is Transient.
	reasonBundleDamaged = "BundleDamaged"
	// reasonDiskSuspected means that files of a bundle were damaged on the host maxDamages times in succession; the kind is
	// Invalid.
	reasonDiskSuspected = "DiskSuspected"
	maxDamages          = 3
	// damageDelay is the delay after the first damage, which doubles with each up to maxDamageDelay.
	damageDelay, maxDamageDelay = 10 * time.Second, 10 * time.Minute
)

// InstallBundle copies a bundle, which has the programs and images of a node, to the host and verifies it there. The
// job of the SSHMachine controller that prepares the host calls it. Files that are on the host already, also those of
// another bundle, are not copied again, and an interrupted upload continues. The two newest bundles and the one in use
// remain on the host. progress receives the bytes that are on the host and their total; it may be nil. A file that is
// damaged on the host is a fault with the delay after which the call should be repeated.
func (h *Host) InstallBundle(ctx context.Context, b bundle.Bundle, progress func(done, total int64)) error {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	claim, err := h.claimParameter()
	if err != nil {
		return err
	}
	step := call{script: "bundle-begin", parameters: []parameter{claim, {"DIGEST", b.Digest}}, input: fileList(b), timeout: bundleTimeout(b)}
	out, err := h.run(ctx, step)
	if err = claimConflict(h.target, err); err != nil {
		return fmt.Errorf("preparing the upload of a bundle: %w", err)
	}
	missing := missingFiles(b, string(out))
	if len(missing) == 0 && bytes.Contains(out, []byte("COMPLETE=true")) {
		progress(b.Size(), b.Size())
		return nil
	}
	if err := h.upload(ctx, b, missing, progress); err != nil {
		return err
	}
	step.script = "bundle-finish"
	out, err = h.run(ctx, step)
	if damaged := values(string(out), "DAMAGED")["DAMAGED"]; len(damaged) > 0 {
		return h.damaged(b, damaged[0])
	}
	if err = claimConflict(h.target, err); err != nil {
		return fmt.Errorf("verifying a bundle: %w", err)
	}
	h.pool.damages.reset(h.target.Address)
	return nil
}

// damaged returns the fault for a file of a bundle that is damaged on the host. A file that is damaged in the bundle itself is
// copied in vain, and is not a fault of the host.
func (h *Host) damaged(b bundle.Bundle, name string) error {
	i := slices.IndexFunc(b.Files, func(f bundle.File) bool { return f.Path == name })
	if i < 0 {
		return errUnexpected("bundle-finish")
	}
	source := b
	source.Files = b.Files[i : i+1]
	if err := source.Verify(); err != nil {
		return err
	}
	times := h.pool.damages.count(h.target.Address)
	retry := pause.Backoff(times, damageDelay, maxDamageDelay)
	if times < maxDamages {
		return fault.New(fault.Transient, reasonBundleDamaged, "%s arrived damaged at host %s and is copied again", name, h.target.Address).RetryIn(retry)
	}
	return fault.New(fault.Invalid, reasonDiskSuspected,
		"%s is damaged on host %s each time it is copied, so the disk or the memory of the host may be defective; check them (dmesg, smartctl -a), or replace the host; the copy is repeated with growing delays",
		name, h.target.Address).RetryIn(retry)
}

// damages counts for each host how many copies of a bundle in succession had a damaged file. [Host.InstallBundle]
// counts and resets them.
type damages struct {
	mu    sync.Mutex
	times map[string]int
}

func (d *damages) count(address string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.times == nil {
		d.times = map[string]int{}
	}
	d.times[address]++
	return d.times[address]
}

func (d *damages) reset(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.times, address)
}

// bundleTimeout is the time for reading a bundle and unpacking its images on a slow and busy host.
func bundleTimeout(b bundle.Bundle) time.Duration {
	return 3*time.Minute + time.Duration(b.Size()/(10<<20))*time.Second
}

// fileList returns the files of a bundle as lines of hash, size, mode and path. None of these contains spaces.
func fileList(b bundle.Bundle) []byte {
	var out strings.Builder
	for _, f := range b.Files {
		mode := "644"
		if f.Executable {
			mode = "755"
		}
		fmt.Fprintf(&out, "%s %d %s %s\n", f.SHA256, f.Size, mode, f.Path)
	}
	return []byte(out.String())
}

// missingFiles returns the files that the host does not have.
func missingFiles(b bundle.Bundle, output string) (out []bundle.File) {
	present := map[string]bool{}
	v := values(output, "PRESENT", "COMPLETE")
	for _, p := range v["PRESENT"] {
		present[p] = true
	}
	if first(v, "COMPLETE") == "true" {
		return nil
	}
	for _, f := range b.Files {
		if !present[f.Path] {
			out = append(out, f)
		}
	}
	return out
}

// upload copies files to the host, each to a file with the extension .part.
func (h *Host) upload(ctx context.Context, b bundle.Bundle, files []bundle.File, progress func(done, total int64)) error {
	done, total := b.Size(), b.Size()
	for _, f := range files {
		done -= f.Size
	}
	_, err := transfer(ctx, h, func(remote *sftp.Client, alive func()) (struct{}, error) {
		for _, f := range files {
			to := path.Join(bundlesPath, b.Digest, f.Path) + ".part"
			u := upload{remote: remote, to: to, size: f.Size, progress: func(n int64) {
				alive()
				progress(done+n, total)
			}}
			if err := u.copy(b, f); err != nil {
				return struct{}{}, fmt.Errorf("copying %s: %w", f.Path, err)
			}
			done += f.Size
		}
		return struct{}{}, nil
	})
	return err
}

// upload is the upload of one file.
type upload struct {
	remote   *sftp.Client
	to       string
	size     int64
	progress func(done int64)
}

func (u upload) copy(b bundle.Bundle, f bundle.File) error {
	from, err := b.Open(f)
	if err != nil {
		return fault.New(fault.Invalid, bundle.ReasonInvalid, "the bundle for Kubernetes %s on %s cannot be read", b.KubernetesVersion, b.Architecture).From(err)
	}
	defer from.Close()
	begin, err := u.resumeAt()
	if err != nil {
		return err
	}
	to, err := u.remote.OpenFile(u.to, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	defer to.Close()
	for at := begin; at < u.size; at += chunk {
		if _, err := to.Seek(at, io.SeekStart); err != nil {
			return err
		}
		n := min(chunk, u.size-at)
		if _, err := to.ReadFrom(io.NewSectionReader(from, at, n)); err != nil {
			return err
		}
		u.progress(at + n)
	}
	if err := to.Truncate(u.size); err != nil {
		return err
	}
	return to.Close()
}

// resumeAt returns the offset at which the upload continues.
func (u upload) resumeAt() (int64, error) {
	info, err := u.remote.Stat(u.to)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return resumeOffset(info.Size(), u.size), nil
}

// resumeOffset returns the offset at which the upload of a file continues. The last piece may have holes, because its
// packets are written in any order, and is sent again.
func resumeOffset(have, size int64) int64 {
	if have <= 0 || have > size {
		return 0
	}
	return (have - 1) / chunk * chunk
}
