package cloudinit

import (
	"encoding/base64"
	"unicode/utf8"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/payload"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/yamltext"
)

// Header is the beginning of every document.
const Header = "## template: jinja\n#cloud-config\n"

// Format writes cloud-config. The zero value is ready to use.
type Format struct{}

// Name returns the value of KubeadmConfig.spec.format for this format.
func (Format) Name() bootstrapv1.Format { return bootstrapv1.CloudConfig }

// ConfigPath returns the empty string: the configuration of kubeadm has the default path of its payload.
func (Format) ConfigPath() string { return "" }

// Render implements the controller's Format with [Render].
func (Format) Render(p payload.Payload) ([]byte, error) { return Render(p) }

// Render returns the document. Errors are Invalid faults about conflicting entries of the payload.
func Render(p payload.Payload) ([]byte, error) {
	files, err := writeFiles(p.Files)
	if err != nil {
		return nil, err
	}
	disks, err := diskSetup(p.DiskSetup.Partitions)
	if err != nil {
		return nil, err
	}
	run := append(append([]string{}, p.PreKubeadmCommands...), p.Kubeadm)
	body, err := yamltext.Encode(yamltext.Map(
		entry("bootcmd", yamltext.Strings(p.BootCommands)),
		entry("write_files", files),
		entry("disk_setup", disks),
		entry("fs_setup", fsSetup(p.DiskSetup.Filesystems)),
		entry("mounts", mounts(p.Mounts)),
		entry("ntp", ntp(p.NTP)),
		entry("users", users(p.Users)),
		entry("runcmd", yamltext.Strings(append(run, p.PostKubeadmCommands...))),
	))
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidCloudConfig", "the cloud-config cannot be encoded").From(err)
	}
	return append([]byte(Header), body...), nil
}

func entry(key string, value *yamltext.Node) yamltext.Entry {
	return yamltext.Entry{Key: key, Value: value}
}

func writeFiles(files []payload.File) (*yamltext.Node, error) {
	var items []*yamltext.Node
	for _, f := range files {
		content, encoding, err := encoded(f)
		if err != nil {
			return nil, err
		}
		var add *yamltext.Node
		if f.Append {
			add = yamltext.Bool(true)
		}
		items = append(items, yamltext.Map(
			entry("path", yamltext.String(f.Path)),
			entry("encoding", yamltext.Optional(string(encoding))),
			entry("owner", yamltext.Optional(f.Owner)),
			entry("permissions", yamltext.Optional(f.Permissions)),
			entry("append", add),
			entry("content", yamltext.String(content)),
		))
	}
	return yamltext.List(items...), nil
}

// encoded returns the content as text together with its encoding. Binary content is additionally encoded as base64.
func encoded(f payload.File) (string, bootstrapv1.Encoding, error) {
	if utf8.Valid(f.Content) {
		return string(f.Content), f.Encoding, nil
	}
	outer := map[bootstrapv1.Encoding]bootstrapv1.Encoding{"": bootstrapv1.Base64, bootstrapv1.Gzip: bootstrapv1.GzipBase64}
	encoding, ok := outer[f.Encoding]
	if !ok {
		return "", "", fault.New(fault.Invalid, payload.ReasonInvalid,
			"the content of file %s is not text, so its encoding cannot be %s; correct either", f.Path, f.Encoding)
	}
	return base64.StdEncoding.EncodeToString(f.Content), encoding, nil
}

func ntp(in bootstrapv1.NTP) *yamltext.Node {
	if !in.IsDefined() {
		return nil
	}
	return yamltext.Map(
		entry("enabled", yamltext.OptionalBool(in.Enabled)),
		entry("servers", yamltext.Strings(in.Servers)),
	)
}

func users(in []bootstrapv1.User) *yamltext.Node {
	var items []*yamltext.Node
	for _, u := range in {
		items = append(items, yamltext.Map(
			entry("name", yamltext.String(u.Name)),
			entry("passwd", yamltext.Optional(u.Passwd)),
			entry("gecos", yamltext.Optional(u.Gecos)),
			entry("groups", yamltext.Optional(u.Groups)),
			entry("homedir", yamltext.Optional(u.HomeDir)),
			entry("inactive", yamltext.OptionalBool(u.Inactive)),
			entry("lock_passwd", yamltext.OptionalBool(u.LockPassword)),
			entry("shell", yamltext.Optional(u.Shell)),
			entry("primary_group", yamltext.Optional(u.PrimaryGroup)),
			entry("sudo", yamltext.Optional(u.Sudo)),
			entry("ssh_authorized_keys", yamltext.Strings(u.SSHAuthorizedKeys)),
		))
	}
	return yamltext.List(items...)
}
