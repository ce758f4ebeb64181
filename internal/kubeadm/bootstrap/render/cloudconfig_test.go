package render

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/test/testkit"
)

func zipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

// cloudConfigEverything has each field of a payload set.
func cloudConfigEverything() Payload {
	return Payload{
		BootCommands: []string{"echo boot", "cloud-init-per once x touch \"/a b\""},
		Files: []File{
			{Path: "/etc/plain", Content: []byte("line 1\nline 2: {{ ds.meta_data.local_hostname }}\n")},
			{Path: "/etc/owned", Owner: "root:adm", Permissions: "0600", Content: []byte("secret")},
			{Path: "/etc/appended", Append: true, Content: []byte("\ttab\n")},
			{Path: "/etc/base64", Encoding: bootstrapv1.Base64, Content: []byte(base64.StdEncoding.EncodeToString([]byte("b64")))},
			{Path: "/etc/zipped", Encoding: bootstrapv1.GzipBase64, Content: []byte(base64.StdEncoding.EncodeToString([]byte("\x00")))},
			{Path: "/etc/binary", Content: []byte{0xff, 0x00, 0xfe}},
			{Path: "/etc/raw-gzip", Encoding: bootstrapv1.Gzip, Content: []byte{0x1f, 0x8b, 0x08}},
		},
		DiskSetup: bootstrapv1.DiskSetup{
			Partitions: []bootstrapv1.Partition{
				{Device: "/dev/sdb", Layout: ptr.To(true), Overwrite: ptr.To(false), TableType: "gpt"},
				{Device: "/dev/sda", TableType: "mbr", DiskLayout: []bootstrapv1.PartitionSpec{
					{Percentage: 10, PartitionType: bootstrapv1.PartitionTypeLinuxSwap},
					{Percentage: 20, PartitionType: "0FC63DAF-8483-4772-8E79-3D69D8477DE4"}, {Percentage: 70},
				}},
			},
			Filesystems: []bootstrapv1.Filesystem{
				{Device: "/dev/sdb", Filesystem: "ext4", Label: "data", Partition: "auto", Overwrite: ptr.To(true), ReplaceFS: "ntfs", ExtraOpts: []string{"-F", "-E", "lazy_itable_init=1"}},
				{Device: "/dev/sda", Filesystem: "xfs", Partition: "3"},
			},
		},
		Mounts: []bootstrapv1.MountPoints{{"LABEL=data", "/var/lib/data"}, {"/dev/sda3", "/mnt", "xfs", "defaults", "0", "2"}},
		NTP:    bootstrapv1.NTP{Enabled: ptr.To(true), Servers: []string{"0.pool.ntp.org", "1.pool.ntp.org"}},
		Users: []bootstrapv1.User{
			{
				Name: "capi", Gecos: "Cluster API", Groups: "docker, wheel", HomeDir: "/home/capi", Inactive: ptr.To(false), Shell: "/bin/bash",
				Passwd: "$6$salt$hash", PrimaryGroup: "capi", LockPassword: ptr.To(false), Sudo: "ALL=(ALL) NOPASSWD:ALL",
				SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA capi@example"},
			},
			{Name: "plain"},
		},
		PreKubeadmCommands:  []string{"hostname \"{{ ds.meta_data.hostname }}\"", "echo pre: 1"},
		Kubeadm:             "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml --v 5 && echo success > /run/cluster-api/bootstrap-success.complete",
		PostKubeadmCommands: []string{"if true; then\n  echo post\nfi\n"},
	}
}

// KB-13, KB-17, KB-18, KB-19
func TestCloudConfigRender(t *testing.T) {
	cases := map[string]Payload{
		"everything": cloudConfigEverything(),
		"nothing":    {Kubeadm: "kubeadm join"},
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := CloudConfigFormat{}.Render(in)
			if err != nil {
				t.Fatal(err)
			}
			testkit.CompareGolden(t, filepath.Join("testdata", name+".yaml"), string(got))
		})
	}
	if (CloudConfigFormat{}).Name() != bootstrapv1.CloudConfig {
		t.Error("this is the format cloud-config")
	}
}

// KB-13: two header lines, then the sections in their order.
func TestRenderOrder(t *testing.T) {
	got, err := renderCloudConfig(cloudConfigEverything())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(got), "## template: jinja\n#cloud-config\n") {
		t.Errorf("the document begins with %q", strings.SplitN(string(got), "\n", 3)[:2])
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	var sections []string
	for i := 0; i < len(doc.Content[0].Content); i += 2 {
		sections = append(sections, doc.Content[0].Content[i].Value)
	}
	want := []string{"bootcmd", "write_files", "disk_setup", "fs_setup", "mounts", "ntp", "users", "runcmd"}
	if diff := cmp.Diff(want, sections); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCloudConfigRenderRefuses(t *testing.T) {
	cases := map[string]struct {
		in   Payload
		says string
	}{
		"a device twice": {Payload{DiskSetup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{Device: "/dev/sda"}, {Device: "/dev/sda"}}}}, "/dev/sda is in diskSetup.partitions twice"},
		"bytes that claim to be base64": {Payload{Files: []File{{Path: "/a", Encoding: bootstrapv1.Base64, Content: []byte{0xff}}}},
			"file /a is not text"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := renderCloudConfig(tc.in)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("want an Invalid fault that says %q, got %v", tc.says, err)
			}
		})
	}
}

// KB-13: what is rendered is read back by a cloud-config reader, encodings undone.
func TestRenderReadsBack(t *testing.T) {
	in := cloudConfigEverything()
	in.Files = in.Files[:4]
	in.Files = append(in.Files,
		File{Path: "/etc/zip64", Encoding: bootstrapv1.GzipBase64, Content: []byte(base64.StdEncoding.EncodeToString(zipped("zip")))},
		File{Path: "/etc/rawzip", Encoding: bootstrapv1.Gzip, Content: zipped("raw")},
		File{Path: "/etc/bytes", Content: []byte{0, 0xff}})
	files, skipped := runRendered(t, in)
	got, commands := map[string]string{}, []string(nil)
	for name, content := range files {
		if !strings.HasPrefix(path.Base(name), "step-") {
			got[name] = content
		} else if strings.Contains(content, in.Kubeadm) {
			commands = append(commands, command.Split(content, -1)[1:]...)
		}
	}
	want := map[string]string{
		"/etc/plain": "line 1\nline 2: node-1\n", "/etc/owned": "secret", "/etc/appended": "\ttab\n", "/etc/base64": "b64",
		"/etc/zip64": "zip", "/etc/rawzip": "raw", "/etc/bytes": "\x00\xff",
		"/etc/sudoers.d/90-cloud-init-users":            "capi ALL=(ALL) NOPASSWD:ALL\n",
		"/etc/systemd/timesyncd.conf.d/cloud-init.conf": "[Time]\nNTP=0.pool.ntp.org 1.pool.ntp.org\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"hostname \"node-1\"\n", "echo pre: 1\n", in.Kubeadm + "\n", "if true; then\n  echo post\nfi\n\n", ""}, commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"disk_setup", "fs_setup", "mounts"}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

var (
	// written matches a file that the script of a machine writes, and its content.
	written = regexp.MustCompile(`base64 -d >>?(\S+)\) <<'\.'\n([^.]*)\.\n`)
	// command matches the line before each command of a document.
	command = regexp.MustCompile(`(?m)^slipway_at .*\n`)
)

// runRendered returns the files that a machine with the rendered document writes, with the scripts that it runs, and the
// parts that it skips.
func runRendered(t *testing.T, in Payload) (files map[string]string, skipped []string) {
	t.Helper()
	value, err := renderCloudConfig(in)
	if err != nil {
		t.Fatal(err)
	}
	data, node := cloudinit.BootstrapData{Value: value}, cloudinit.NodeSettings{Name: "i-1", Hostname: "node-1"}
	script, err := cloudinit.RenderScript(data, node, time.Minute)
	if err != nil {
		t.Fatalf("%v\n%s", err, value)
	}
	files = map[string]string{}
	for _, m := range written.FindAllSubmatch(script.Body, -1) {
		content, err := base64.StdEncoding.DecodeString(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		files[strings.Trim(string(m[1]), "'")] = string(content)
	}
	skipped, err = cloudinit.SkippedParts(data, node)
	if err != nil {
		t.Fatal(err)
	}
	return files, skipped
}

// FuzzRender: no string breaks out of its place. A reader finds exactly the sections, files and commands
// that went in, with exactly their text.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"", "x", "a: b\n- c\n", "#cloud-config\nruncmd:\n- evil\n", "\"'\\", "\x00\xff", "|\n  a", "yes", "\u0085\u2028\n", "\t\n"} {
		f.Add(s, []byte(s))
	}
	f.Fuzz(func(t *testing.T, s string, content []byte) {
		in := Payload{
			Files:   []File{{Path: "/f", Owner: s, Content: content}},
			Users:   []bootstrapv1.User{{Name: "u" + s, Gecos: s, Sudo: s, SSHAuthorizedKeys: []string{s}}},
			NTP:     bootstrapv1.NTP{Servers: []string{s}},
			Mounts:  []bootstrapv1.MountPoints{{s, s}},
			Kubeadm: s,
		}
		data, err := renderCloudConfig(in)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Files  []map[string]any `yaml:"write_files"`
			Users  []map[string]any `yaml:"users"`
			NTP    map[string]any   `yaml:"ntp"`
			Mounts [][]string       `yaml:"mounts"`
			Run    []string         `yaml:"runcmd"`
		}
		dec := yaml.NewDecoder(bytes.NewReader(data))
		dec.KnownFields(true)
		if err := dec.Decode(&doc); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		want := strings.ToValidUTF8(s, "\ufffd")
		got := []any{doc.Run[0], doc.Users[0]["name"], doc.NTP["servers"].([]any)[0], doc.Mounts[0][1]}
		if diff := cmp.Diff([]any{want, "u" + want, want, want}, got); diff != "" || len(doc.Files) != 1 || len(doc.Users) != 1 || len(doc.Run) != 1 {
			t.Errorf("(-want +got):\n%s\n%s", diff, data)
		}
		text := []byte(doc.Files[0]["content"].(string))
		if doc.Files[0]["encoding"] == "base64" {
			text, _ = base64.StdEncoding.DecodeString(string(text))
		}
		if !slices.Equal(text, content) {
			t.Errorf("content %q comes back as %q", content, text)
		}
	})
}
