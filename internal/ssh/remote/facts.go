package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/redact"
)

// Facts describe a host. The SSHHost controller reports them in the status, and `slipway hosts` prints them.
type Facts struct {
	// OSImage is the name of the operating system, such as "Debian GNU/Linux 12 (bookworm)".
	OSImage string
	// Architecture as in Kubernetes, such as "amd64".
	Architecture string
	Kernel       string
	Hostname     string
	CPUs         int
	MemoryMiB    int64
	// DiskMiB is the size of the file system of /var/lib, DiskFreeMiB its free space.
	DiskMiB, DiskFreeMiB int64
	// Disks are the disks of the host, sorted by name.
	Disks []Disk
	// SecurityModule is "AppArmor", "SELinux (enforcing)", "SELinux (permissive)" or empty.
	SecurityModule string
	// ContainerRuntime lists the units of container runtimes that are active and were not installed by Slipway, separated by
	// commas.
	ContainerRuntime string
	// ClockOffset is how far the host's clock is ahead, with an error of about a second.
	ClockOffset time.Duration
	// CgroupVersion is 1 or 2.
	CgroupVersion int
	// BootID changes with each boot.
	BootID string
	// MachineIDHash and ProductUUIDHash identify the installation and the hardware without disclosing the IDs. Empty if
	// the host has none.
	MachineIDHash, ProductUUIDHash string
	// KubeletRunning is set if a kubelet runs, HasRecord if a claim is recorded.
	KubeletRunning, HasRecord bool
	// Cleaning is the checklist of the last cleaning. Nil: the host was not cleaned since its last claim.
	Cleaning *CleaningRecord
	// Bundles are the digests of the complete bundles on the host, sorted.
	Bundles []string
}

// CleaningRecord is the checklist of a cleaning that left nothing behind, as recorded on the host. The SSHHost
// controller reports it.
type CleaningRecord struct {
	// ClaimID is the claim whose node was removed, or "unrecorded".
	ClaimID string `json:"claimID"`
	// CleanedAt is the time by the clock of the host.
	CleanedAt time.Time `json:"cleanedAt"`
	// Verified lists what was compared with the inventory from before the claim.
	Verified []string `json:"verified"`
}

// Disk is a disk of a host.
type Disk struct {
	// Name of the block device, such as "nvme0n1".
	Name    string
	SizeMiB int64
}

const (
	// maxVerified limits the items of a checklist.
	maxVerified = 16
	// maxDisks limits the number of reported disks.
	maxDisks = 32
	// maxFact limits the length of a text in Facts.
	maxFact = 128
	// maxBundles limits the number of reported bundles.
	maxBundles = 16
	// maxValue limits the length of a value in the output of a script, maxValues their number for each name.
	maxValue, maxValues = 4096, 2000
)

// Facts reads the facts of the host.
func (h *Host) Facts(ctx context.Context) (Facts, error) {
	began := time.Now()
	out, err := h.run(ctx, call{script: "facts"})
	if err != nil {
		return Facts{}, err
	}
	return parseFacts(string(out), began, time.Now()), nil
}

// fact makes a text from a host short and printable.
func fact(text string) string { return redact.Clip(redact.Escape(strings.TrimSpace(text)), maxFact) }

// values parses NAME=value lines of the given names; others are discarded, because a host could return any number. A
// name that occurs several times has all its values, up to a limit. The parsers of the output of all scripts call it.
func values(text string, names ...string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if ok && slices.Contains(names, name) && len(out[name]) < maxValues {
			out[name] = append(out[name], strings.Clone(value[:min(len(value), maxValue)]))
		}
	}
	return out
}

// first returns the first value of a name, or an empty string.
func first(from map[string][]string, name string) string {
	if len(from[name]) == 0 {
		return ""
	}
	return from[name][0]
}

// number parses a number that is not negative; 0 if it is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// digest matches the digest of a bundle.
var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

func parseFacts(text string, began, ended time.Time) Facts {
	v := values(text, "OS", "ARCHITECTURE", "KERNEL", "HOSTNAME", "CPUS", "MEMORY_KIB", "DISK_KIB", "DISK_FREE_KIB", "RUNTIME", "NOW", "CGROUP", "BOOT_ID",
		"MACHINE_ID", "PRODUCT_UUID", "KUBELET", "RECORD", "BUNDLE", "DISK", "SELINUX", "APPARMOR", "CLEANED")
	f := Facts{
		OSImage: fact(first(v, "OS")), Architecture: architecture(first(v, "ARCHITECTURE")), Kernel: fact(first(v, "KERNEL")), Hostname: fact(first(v, "HOSTNAME")),
		CPUs: int(min(number(first(v, "CPUS")), math.MaxInt32)), MemoryMiB: number(first(v, "MEMORY_KIB")) / 1024,
		DiskMiB: number(first(v, "DISK_KIB")) / 1024, DiskFreeMiB: number(first(v, "DISK_FREE_KIB")) / 1024,
		ContainerRuntime: fact(first(v, "RUNTIME")), ClockOffset: clockOffset(number(first(v, "NOW")), began, ended),
		CgroupVersion: int(min(number(first(v, "CGROUP")), 2)), BootID: fact(first(v, "BOOT_ID")),
		MachineIDHash: identityHash("machine-id", first(v, "MACHINE_ID")), ProductUUIDHash: identityHash("product-uuid", first(v, "PRODUCT_UUID")),
		Disks: disks(v["DISK"]), SecurityModule: securityModule(first(v, "SELINUX"), first(v, "APPARMOR")),
		Cleaning: cleaningRecord(first(v, "CLEANED")), KubeletRunning: first(v, "KUBELET") == "true", HasRecord: first(v, "RECORD") == "true",
	}
	for _, b := range v["BUNDLE"] {
		if digest.MatchString(b) && len(f.Bundles) < maxBundles {
			f.Bundles = append(f.Bundles, b)
		}
	}
	slices.Sort(f.Bundles)
	return f
}

// cleaningRecord parses the record of a cleaning, nil if it is none.
func cleaningRecord(text string) *CleaningRecord {
	var r CleaningRecord
	if json.Unmarshal([]byte(text), &r) != nil || r.ClaimID != claimUnrecorded && !claimID.MatchString(r.ClaimID) || r.CleanedAt.Year() < 2000 || r.CleanedAt.Year() > 9999 {
		return nil
	}
	r.CleanedAt, r.Verified = r.CleanedAt.UTC().Truncate(time.Second), r.Verified[:min(len(r.Verified), maxVerified)]
	for i, item := range r.Verified {
		r.Verified[i] = fact(item)
	}
	return &r
}

// diskName matches the name of a block device.
var diskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9!._-]{0,31}$`)

// disks parses lines of a name and a size in sectors of 512 bytes. A name that occurs several times counts once.
func disks(lines []string) (out []Disk) {
	for _, line := range lines {
		name, size, _ := strings.Cut(line, " ")
		d := Disk{Name: name, SizeMiB: number(size) / 2048}
		isKnown := slices.ContainsFunc(out, func(other Disk) bool { return other.Name == name })
		if d.SizeMiB > 0 && diskName.MatchString(name) && !isKnown && len(out) < maxDisks {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// securityModule names the security module with the contents of the files in which the kernel reports it.
func securityModule(selinux, apparmor string) string {
	switch {
	case selinux == "1":
		return "SELinux (enforcing)"
	case selinux == "0":
		return "SELinux (permissive)"
	case apparmor == "Y":
		return "AppArmor"
	}
	return ""
}

// architecture returns the name that Kubernetes uses for a machine name of uname.
func architecture(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return fact(machine)
}

// clockOffset returns the difference to a clock that was read at some time between began and ended. A reading that is
// possible without an offset is none: the clock has seconds only.
func clockOffset(read int64, began, ended time.Time) time.Duration {
	if read == 0 || read > math.MaxInt32*4 {
		return 0
	}
	switch at := time.Unix(read, 0); {
	case at.After(ended):
		return at.Sub(ended).Truncate(time.Second)
	case at.Add(time.Second).Before(began):
		return at.Sub(began).Truncate(time.Second)
	}
	return 0
}

// identityHash returns a short hash of an ID, empty for an ID that identifies nothing.
func identityHash(kind, id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if slices.Contains(noIdentities(), id) {
		return ""
	}
	sum := sha256.Sum256([]byte("slipway " + kind + " " + id))
	return hex.EncodeToString(sum[:8])
}

// noIdentities are the contents of /etc/machine-id before the first boot, and product UUIDs that firmware has if its vendor has
// set none. Many machines have them.
func noIdentities() []string {
	return []string{
		"", "uninitialized",
		"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
	}
}
