package render

import (
	"encoding/base64"
	"unicode/utf8"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/api"
)

// cloudConfigHeader is the beginning of every document. cloud-init recognizes the format by it.
const cloudConfigHeader = "## template: jinja\n#cloud-config\n"

// CloudConfigFormat writes cloud-config, the default format of bootstrap data. The KubeadmConfig controller renders
// with it unless spec.format is ignition. The zero value is ready to use.
type CloudConfigFormat struct{}

// Name returns the value of KubeadmConfig.spec.format for this format.
func (CloudConfigFormat) Name() bootstrapv1.Format { return bootstrapv1.CloudConfig }

// ConfigPath returns the empty string: kubeadm's configuration has the default path of its role. The KubeadmConfig
// controller passes it to [Init], [Join] and [JoinControlPlane].
func (CloudConfigFormat) ConfigPath() string { return "" }

// Render returns the payload as a cloud-config document, see [renderCloudConfig].
func (CloudConfigFormat) Render(p Payload) ([]byte, error) { return renderCloudConfig(p) }

// renderCloudConfig returns the document. Keys and values are defined by cloud-init's modules, and the tests compare
// documents with golden files. Errors are Invalid faults about conflicting entries of the payload.
func renderCloudConfig(p Payload) ([]byte, error) {
	files, err := writeFiles(p.Files)
	if err != nil {
		return nil, err
	}
	disks, err := diskSetup(p.DiskSetup.Partitions)
	if err != nil {
		return nil, err
	}
	run := append(append([]string{}, p.PreKubeadmCommands...), p.Kubeadm)
	body, err := api.YAMLEncode(api.YAMLMap(
		entry("bootcmd", api.YAMLStrings(p.BootCommands)),
		entry("write_files", files),
		entry("disk_setup", disks),
		entry("fs_setup", fsSetup(p.DiskSetup.Filesystems)),
		entry("mounts", mounts(p.Mounts)),
		entry("ntp", ntp(p.NTP)),
		entry("users", users(p.Users)),
		entry("runcmd", api.YAMLStrings(append(run, p.PostKubeadmCommands...))),
	))
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidCloudConfig", "the cloud-config cannot be encoded").From(err)
	}
	return append([]byte(cloudConfigHeader), body...), nil
}

func entry(key string, value *api.YAMLNode) api.YAMLEntry {
	return api.YAMLEntry{Key: key, Value: value}
}

func writeFiles(files []File) (*api.YAMLNode, error) {
	var items []*api.YAMLNode
	for _, f := range files {
		content, encoding, err := encoded(f)
		if err != nil {
			return nil, err
		}
		var add *api.YAMLNode
		if f.Append {
			add = api.YAMLBool(true)
		}
		items = append(items, api.YAMLMap(
			entry("path", api.YAMLString(f.Path)),
			entry("encoding", api.YAMLOptional(string(encoding))),
			entry("owner", api.YAMLOptional(f.Owner)),
			entry("permissions", api.YAMLOptional(f.Permissions)),
			entry("append", add),
			entry("content", api.YAMLString(content)),
		))
	}
	return api.YAMLList(items...), nil
}

// encoded returns the content as text together with its encoding. Binary content is additionally encoded as base64.
func encoded(f File) (string, bootstrapv1.Encoding, error) {
	if utf8.Valid(f.Content) {
		return string(f.Content), f.Encoding, nil
	}
	outer := map[bootstrapv1.Encoding]bootstrapv1.Encoding{"": bootstrapv1.Base64, bootstrapv1.Gzip: bootstrapv1.GzipBase64}
	encoding, ok := outer[f.Encoding]
	if !ok {
		return "", "", invalid("the content of file %s is not text, so its encoding cannot be %s; change one of them", f.Path, f.Encoding)
	}
	return base64.StdEncoding.EncodeToString(f.Content), encoding, nil
}

func ntp(in bootstrapv1.NTP) *api.YAMLNode {
	if !in.IsDefined() {
		return nil
	}
	return api.YAMLMap(
		entry("enabled", api.YAMLOptionalBool(in.Enabled)),
		entry("servers", api.YAMLStrings(in.Servers)),
	)
}

func users(in []bootstrapv1.User) *api.YAMLNode {
	var items []*api.YAMLNode
	for _, u := range in {
		items = append(items, api.YAMLMap(
			entry("name", api.YAMLString(u.Name)),
			entry("passwd", api.YAMLOptional(u.Passwd)),
			entry("gecos", api.YAMLOptional(u.Gecos)),
			entry("groups", api.YAMLOptional(u.Groups)),
			entry("homedir", api.YAMLOptional(u.HomeDir)),
			entry("inactive", api.YAMLOptionalBool(u.Inactive)),
			entry("lock_passwd", api.YAMLOptionalBool(u.LockPassword)),
			entry("shell", api.YAMLOptional(u.Shell)),
			entry("primary_group", api.YAMLOptional(u.PrimaryGroup)),
			entry("sudo", api.YAMLOptional(u.Sudo)),
			entry("ssh_authorized_keys", api.YAMLStrings(u.SSHAuthorizedKeys)),
		))
	}
	return api.YAMLList(items...)
}
