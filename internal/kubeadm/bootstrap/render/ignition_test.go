package render

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flatcar/ignition/config/v2_3"
	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/vincent-petithory/dataurl"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit"
)

// everything is a payload with all that Ignition can express.
func everything() Payload {
	return Payload{
		Files: []File{
			{Path: "/etc/motd", Content: []byte("first\n")},
			{Path: "/etc/motd", Owner: "core:1000", Permissions: "0600", Content: []byte{0, 0xff}},
			{Path: "/etc/b64", Encoding: bootstrapv1.Base64, Content: []byte("aGVsbG8=")},
			{Path: "/etc/hosts", Append: true, Content: []byte("10.0.0.1 a\n")},
			{Path: configPath, Owner: "root:root", Permissions: "0640", Content: []byte("apiVersion: x\n")},
			{Path: markerPath, Owner: "root:root", Content: []byte("x")},
		},
		DiskSetup: bootstrapv1.DiskSetup{
			Partitions: []bootstrapv1.Partition{
				{Device: "/dev/sdb", Layout: ptr.To(true), Overwrite: ptr.To(true), TableType: "gpt"},
				{Device: "/dev/sdc", DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 100, PartitionType: bootstrapv1.PartitionTypeLVM}}},
			},
			Filesystems: []bootstrapv1.Filesystem{
				{Device: "/dev/sdb1", Filesystem: "ext4", Label: "etcd", Overwrite: ptr.To(true), ExtraOpts: []string{"-E", "lazy_itable_init=1"}},
				{Device: "/dev/sdd", Filesystem: "xfs"},
			},
		},
		Mounts: []bootstrapv1.MountPoints{{"LABEL=etcd", "/var/lib/etcd-data"}, {"/dev/sdd", "/srv/100%", "xfs", "noatime"}},
		NTP:    bootstrapv1.NTP{Servers: []string{"a.ntp.example", "b.ntp.example"}},
		Users: []bootstrapv1.User{
			{Name: "ops", Gecos: "Operators", Groups: "wheel, docker", HomeDir: "/home/ops", Shell: "/bin/bash", Passwd: "$6$x",
				PrimaryGroup: "ops", Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA"}},
			{Name: "locked", Passwd: "$6$y", LockPassword: ptr.To(true)},
		},
		PreKubeadmCommands:  []string{"envsubst < /etc/kubeadm.yml > /etc/kubeadm.yml.tmp"},
		Kubeadm:             "kubeadm join --config /etc/kubeadm.yml && echo success > /run/cluster-api/bootstrap-success.complete",
		PostKubeadmCommands: []string{"echo done"},
		Ignition: bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{Strict: ptr.To(true), AdditionalConfig: `
systemd:
  units:
  - name: kubeadm.service
    enabled: true
    dropins:
    - name: 10-flatcar.conf
      contents: |
        [Unit]
        After=coreos-metadata.service
  - name: update-engine.service
    mask: true
storage:
  files:
  - path: /opt/x
    filesystem: root
    mode: 0644
    contents:
      inline: x
`}},
	}
}

// read parses the data with Ignition's parser, which validates it.
func read(t *testing.T, data []byte) types.Config {
	t.Helper()
	config, report, err := v2_3.Parse(data)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, report.String(), data)
	}
	for _, e := range report.Entries {
		// Ignition's own encoding of an empty section is one that its validator does not know.
		if e.Message != "Config has unrecognized key: tls" {
			t.Errorf("%s\n%s", e.String(), data)
		}
	}
	return config
}

// KB-14
func TestRender(t *testing.T) {
	for name, p := range map[string]Payload{
		"everything": everything(),
		"nothing":    {Kubeadm: "kubeadm init --config /etc/kubeadm.yml"},
	} {
		data, err := renderIgnition(p)
		if err != nil {
			t.Fatal(err)
		}
		config := read(t, data)
		for i := range config.Storage.Files { // in plain text, to be read by people
			source := &config.Storage.Files[i].Contents.Source
			url, err := dataurl.DecodeString(*source)
			if err != nil {
				t.Fatal(err)
			}
			*source = string(url.Data)
		}
		text, err := json.MarshalIndent(config, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		testkit.CompareGolden(t, filepath.Join("testdata", name+".json"), string(text)+"\n")
	}
}

// KB-14, KB-26: what Ignition cannot express is refused and named, never left out.
func TestRenderRefuses(t *testing.T) {
	additional := func(text string, strict bool) Payload {
		return Payload{Ignition: bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{AdditionalConfig: text, Strict: &strict}}}
	}
	file := func(f File) Payload { return Payload{Files: []File{f}} }
	partition := func(p bootstrapv1.Partition) Payload {
		return Payload{DiskSetup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{p}}}
	}
	filesystem := func(f bootstrapv1.Filesystem) Payload {
		return Payload{DiskSetup: bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{f}}}
	}
	layout := func(parts ...bootstrapv1.PartitionSpec) Payload {
		return partition(bootstrapv1.Partition{Device: "/dev/sdb", DiskLayout: parts})
	}
	for name, tc := range map[string]struct {
		in   Payload
		says string
	}{
		"boot commands":        {Payload{BootCommands: []string{"x"}}, "bootCommands"},
		"inactive user":        {Payload{Users: []bootstrapv1.User{{Name: "u", Inactive: ptr.To(true)}}}, "inactive"},
		"user in two lines":    {Payload{Users: []bootstrapv1.User{{Name: "u", Sudo: "ALL\nroot ALL"}}}, "sudo"},
		"user with a path":     {Payload{Users: []bootstrapv1.User{{Name: "../u", Sudo: "ALL"}}}, "sudo"},
		"gzip":                 {file(File{Path: "/f", Encoding: bootstrapv1.Gzip}), "encoding gzip of file /f"},
		"no base64":            {file(File{Path: "/f", Encoding: bootstrapv1.Base64, Content: []byte("?")}), "is not base64"},
		"no octal":             {file(File{Path: "/f", Permissions: "rw"}), "not octal"},
		"too many permissions": {file(File{Path: "/f", Permissions: "77777"}), "illegal file mode"},
		"relative path":        {file(File{Path: "f"}), "path not absolute"},
		"mbr":                  {partition(bootstrapv1.Partition{Device: "/dev/sdb", TableType: "mbr"}), "partition table mbr"},
		"percentages":          {layout(bootstrapv1.PartitionSpec{Percentage: 50}, bootstrapv1.PartitionSpec{Percentage: 50}), "additionalConfig"},
		"half of the disk":     {layout(bootstrapv1.PartitionSpec{Percentage: 50}), "additionalConfig"},
		"extended":             {layout(bootstrapv1.PartitionSpec{Percentage: 100, PartitionType: bootstrapv1.PartitionTypeLinuxExtended}), "partition type"},
		"no GUID":              {layout(bootstrapv1.PartitionSpec{Percentage: 100, PartitionType: "x"}), "doesn't match the form"},
		"replaceFS":            {filesystem(bootstrapv1.Filesystem{Device: "/dev/sdb", Filesystem: "ext4", ReplaceFS: "x"}), "replaceFS"},
		"partition":            {filesystem(bootstrapv1.Filesystem{Device: "/dev/sdb", Filesystem: "ext4", Partition: "auto"}), "partition"},
		"file system":          {filesystem(bootstrapv1.Filesystem{Device: "/dev/sdb", Filesystem: "ntfs"}), "format"},
		"mount without place":  {Payload{Mounts: []bootstrapv1.MountPoints{{"/dev/sdb"}}}, "absolute path"},
		"mount in two lines":   {Payload{Mounts: []bootstrapv1.MountPoints{{"/dev/sdb\nExecStart=x", "/x"}}}, "absolute path"},
		"NTP in two lines":     {Payload{NTP: bootstrapv1.NTP{Servers: []string{"a\nrestrict x"}}}, "NTP server"},
		"no YAML":              {additional("a: [", false), "additionalConfig cannot be used"},
		"unknown key, strict":  {additional("nonsense: 1", true), "nonsense"},
		"broken unit":          {additional("systemd:\n  units:\n  - name: x.txt\n", false), "invalid systemd unit extension"},
	} {
		if _, err := renderIgnition(tc.in); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: want an Invalid fault that says %q, got %v", name, tc.says, err)
		}
	}
	if _, err := renderIgnition(additional("nonsense: 1", false)); err != nil {
		t.Errorf("warnings do not count unless it is strict: %v", err)
	}
	if _, err := renderIgnition(Payload{NTP: bootstrapv1.NTP{Enabled: ptr.To(false), Servers: []string{"x"}}}); err != nil {
		t.Errorf("NTP that is off: %v", err)
	}
}
