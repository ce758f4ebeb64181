package remote

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonInvalidIgnition is the reason of faults about Ignition configurations. The kind is Invalid.
const reasonInvalidIgnition = "InvalidIgnition"

// maxIgnition limits the size of a configuration, in bytes.
const maxIgnition = 4 << 20

// ignitionConfig contains the parts of an Ignition configuration, versions 2 and 3, that apply to a machine that is
// running: files, directories, links, units and users.
type ignitionConfig struct {
	Ignition struct {
		Version string `json:"version"`
		Config  struct {
			Append  []json.RawMessage `json:"append"`
			Merge   []json.RawMessage `json:"merge"`
			Replace json.RawMessage   `json:"replace"`
		} `json:"config"`
	} `json:"ignition"`
	Storage struct {
		Disks       []json.RawMessage `json:"disks"`
		RAID        []json.RawMessage `json:"raid"`
		Filesystems []json.RawMessage `json:"filesystems"`
		Directories []ignitionNode    `json:"directories"`
		Files       []ignitionFile    `json:"files"`
		Links       []ignitionLink    `json:"links"`
	} `json:"storage"`
	Systemd struct {
		Units []ignitionUnit `json:"units"`
	} `json:"systemd"`
	Passwd struct {
		Users []ignitionUser `json:"users"`
	} `json:"passwd"`
}

// ignitionNode is a directory, file or link.
type ignitionNode struct {
	Path  string        `json:"path"`
	Mode  *int          `json:"mode"`
	User  ignitionOwner `json:"user"`
	Group ignitionOwner `json:"group"`
}

type ignitionOwner struct {
	ID   *int   `json:"id"`
	Name string `json:"name"`
}

type ignitionContents struct {
	Source      string `json:"source"`
	Compression string `json:"compression"`
}

type ignitionFile struct {
	ignitionNode
	Contents ignitionContents `json:"contents"`
	// Append is a boolean in version 2, and a list in version 3.
	Append json.RawMessage `json:"append"`
}

type ignitionLink struct {
	ignitionNode
	Target string `json:"target"`
	Hard   bool   `json:"hard"`
}

type ignitionUnit struct {
	Name     string `json:"name"`
	Enabled  *bool  `json:"enabled"`
	Enable   bool   `json:"enable"`
	Mask     bool   `json:"mask"`
	Contents string `json:"contents"`
	Dropins  []struct {
		Name     string `json:"name"`
		Contents string `json:"contents"`
	} `json:"dropins"`
}

type ignitionUser struct {
	Name              string   `json:"name"`
	PasswordHash      string   `json:"passwordHash"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
	Gecos             string   `json:"gecos"`
	HomeDir           string   `json:"homeDir"`
	NoCreateHome      bool     `json:"noCreateHome"`
	PrimaryGroup      string   `json:"primaryGroup"`
	Groups            []string `json:"groups"`
	Shell             string   `json:"shell"`
}

// cloudConfig is the cloud-config that has the same effect. Package cloudinit parses it, so the names must be the ones
// of cloud-init.
type cloudConfig struct {
	BootCmd    [][]string  `json:"bootcmd,omitempty"`
	WriteFiles []cloudFile `json:"write_files,omitempty"`
	Users      []cloudUser `json:"users,omitempty"`
	RunCmd     [][]string  `json:"runcmd,omitempty"`
}

type cloudFile struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding"`
	Permissions string `json:"permissions"`
	Owner       string `json:"owner"`
	Append      bool   `json:"append,omitempty"`
	// Defer writes the file when the users have been created.
	Defer bool `json:"defer,omitempty"`
}

type cloudUser struct {
	Name              string   `json:"name"`
	Gecos             string   `json:"gecos,omitempty"`
	Passwd            string   `json:"passwd,omitempty"`
	HomeDir           string   `json:"homedir,omitempty"`
	NoCreateHome      bool     `json:"no_create_home,omitempty"`
	PrimaryGroup      string   `json:"primary_group,omitempty"`
	Groups            string   `json:"groups,omitempty"`
	Shell             string   `json:"shell,omitempty"`
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys,omitempty"`
}

// cloudConfigOf converts an Ignition configuration to a cloud-config, so that both formats run in the same way. What
// only the first boot of an installation can do, such as partitioning, is a fault of kind Invalid.
// [Host.StartBootstrap] calls it.
func cloudConfigOf(data []byte) ([]byte, error) {
	in, err := parseIgnition(data)
	if err != nil {
		return nil, err
	}
	var out cloudConfig
	for _, d := range in.Storage.Directories {
		command := []string{"install", "-d", "-m", permissions(d.Mode, 0o755), "-o", d.User.name(), "-g", d.Group.name(), "--", path.Clean(d.Path)}
		if in.creates(d) {
			out.RunCmd = append(out.RunCmd, command)
		} else {
			out.BootCmd = append(out.BootCmd, command)
		}
	}
	for _, f := range in.Storage.Files {
		file, err := f.cloudFile()
		if err != nil {
			return nil, err
		}
		file.Defer = in.creates(f.ignitionNode)
		out.WriteFiles = append(out.WriteFiles, file)
	}
	for _, l := range in.Storage.Links {
		kind := "-sfn"
		if l.Hard {
			kind = "-fn"
		}
		at := path.Clean(l.Path)
		out.RunCmd = append(out.RunCmd, []string{"mkdir", "-p", "--", path.Dir(at)}, []string{"ln", kind, "--", l.Target, at})
	}
	for _, u := range in.Passwd.Users {
		out.Users = append(out.Users, cloudUser{
			Name: u.Name, Gecos: u.Gecos, Passwd: u.PasswordHash, HomeDir: u.HomeDir, NoCreateHome: u.NoCreateHome, PrimaryGroup: u.PrimaryGroup,
			Groups: strings.Join(u.Groups, ","), Shell: u.Shell, SSHAuthorizedKeys: u.SSHAuthorizedKeys,
		})
	}
	out.addUnits(in.Systemd.Units)
	text, err := json.Marshal(out) // JSON is YAML
	return append([]byte("#cloud-config\n"), text...), err
}

func parseIgnition(data []byte) (in ignitionConfig, err error) {
	if len(data) > maxIgnition {
		return in, invalidIgnition("the configuration is larger than %d bytes", maxIgnition)
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, invalidIgnition("the configuration cannot be parsed").From(err)
	}
	return in, in.check()
}

// creates reports whether the owner or the group of a node is created by the configuration, after most files are written.
func (in ignitionConfig) creates(n ignitionNode) bool {
	return slices.ContainsFunc(in.Passwd.Users, func(u ignitionUser) bool {
		group := n.Group.Name
		return u.Name == n.User.Name || group != "" && (group == u.Name || group == u.PrimaryGroup || slices.Contains(u.Groups, group))
	})
}

// ignitionChanges returns what a configuration changes in addition to the files, users and groups of its cloud-config:
// the links, the directories, and the units that it masks. [Host.StartBootstrap] adds them to the script.
func ignitionChanges(data []byte) (links, directories, masked []string, err error) {
	in, err := parseIgnition(data)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, l := range in.Storage.Links {
		links = append(links, path.Clean(l.Path))
	}
	for _, d := range in.Storage.Directories {
		directories = append(directories, path.Clean(d.Path))
	}
	for _, u := range in.Systemd.Units {
		if u.Mask {
			masked = append(masked, u.Name)
		}
	}
	return links, directories, masked, nil
}

// check rejects parts that are not supported, and names that are not valid paths.
func (in ignitionConfig) check() error {
	if major, _, _ := strings.Cut(in.Ignition.Version, "."); major != "2" && major != "3" {
		return invalidIgnition("version %.20q is not supported; use version 2 or 3", in.Ignition.Version)
	}
	c := in.Ignition.Config
	switch s := in.Storage; {
	case len(s.Disks) > 0, len(s.RAID) > 0, len(s.Filesystems) > 0:
		return invalidIgnition("it changes disks, which only the installation of a host can do; remove storage.disks, storage.raid and storage.filesystems")
	case len(c.Append) > 0, len(c.Merge) > 0, len(c.Replace) > 0 && string(c.Replace) != "null" && string(c.Replace) != "{}":
		return invalidIgnition("it refers to other configurations, which are not fetched")
	}
	for _, u := range in.Systemd.Units {
		if err := checkUnitName(u.Name); err != nil {
			return err
		}
		for _, d := range u.Dropins {
			if err := checkUnitName(d.Name); err != nil {
				return err
			}
		}
	}
	var paths []string
	for _, d := range in.Storage.Directories {
		paths = append(paths, d.Path)
	}
	for _, l := range in.Storage.Links {
		paths = append(paths, l.Path)
	}
	for _, p := range paths {
		if !path.IsAbs(p) {
			return invalidIgnition("%.80q is not an absolute path", p)
		}
	}
	return nil
}

func checkUnitName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\x00\n\r") || name[0] == '-' || name[0] == '.' {
		return invalidIgnition("%.80q is not the name of a unit", name)
	}
	return nil
}

func (f ignitionFile) cloudFile() (cloudFile, error) {
	content, encoding, err := f.Contents.decode()
	if err != nil {
		return cloudFile{}, invalidIgnition("the content of file %.80q cannot be used", f.Path).From(err)
	}
	out := cloudFile{Path: f.Path, Content: content, Encoding: encoding, Permissions: permissions(f.Mode, 0o644), Owner: f.User.name() + ":" + f.Group.name()}
	switch appended := strings.TrimSpace(string(f.Append)); appended {
	case "", "null", "false", "[]":
	case "true":
		out.Append = true
	default:
		return cloudFile{}, invalidIgnition("file %.80q has a list of parts to append, which is not supported", f.Path)
	}
	return out, nil
}

// decode returns the content of a data URL in a form and encoding of cloud-config.
func (c ignitionContents) decode() (content, encoding string, err error) {
	rest, isData := strings.CutPrefix(c.Source, "data:")
	if c.Source != "" && !isData {
		return "", "", fmt.Errorf("only data URLs are supported, not %.40q", c.Source)
	}
	kind, body, _ := strings.Cut(rest, ",")
	var plain []byte
	if strings.HasSuffix(kind, ";base64") {
		plain, err = base64.StdEncoding.DecodeString(body)
	} else {
		var text string
		text, err = url.PathUnescape(body)
		plain = []byte(text)
	}
	if err != nil {
		return "", "", err
	}
	switch c.Compression {
	case "":
		return base64.StdEncoding.EncodeToString(plain), "base64", nil
	case "gzip":
		return base64.StdEncoding.EncodeToString(plain), "gzip+base64", nil
	}
	return "", "", fmt.Errorf("compression %.20q is not supported", c.Compression)
}

// addUnits writes units, and starts the enabled ones in order. A unit of type oneshot, such as the one that runs
// kubeadm, is waited for.
func (c *cloudConfig) addUnits(units []ignitionUnit) {
	const dir = "/etc/systemd/system/"
	write := func(name, text string) {
		c.WriteFiles = append(c.WriteFiles, cloudFile{Path: name, Content: base64.StdEncoding.EncodeToString([]byte(text)), Encoding: "base64", Permissions: "0644", Owner: "root:root"})
	}
	for _, u := range units {
		if u.Contents != "" {
			write(dir+u.Name, u.Contents)
		}
		for _, d := range u.Dropins {
			write(dir+u.Name+".d/"+d.Name, d.Contents)
		}
	}
	c.RunCmd = append(c.RunCmd, []string{"systemctl", "daemon-reload"})
	for _, u := range units {
		if u.Mask {
			c.RunCmd = append(c.RunCmd, []string{"systemctl", "mask", "--now", u.Name})
		}
	}
	for _, u := range units {
		if !u.Mask && (u.Enable || u.Enabled != nil && *u.Enabled) {
			c.RunCmd = append(c.RunCmd, []string{"systemctl", "enable", u.Name}, []string{"systemctl", "start", u.Name})
		}
	}
}

// name returns the owner for the command chown.
func (o ignitionOwner) name() string {
	switch {
	case o.Name != "":
		return o.Name
	case o.ID != nil:
		return fmt.Sprint(*o.ID)
	}
	return "root"
}

// permissions returns a mode as an octal number.
func permissions(mode *int, otherwise int) string {
	if mode != nil {
		otherwise = *mode
	}
	return fmt.Sprintf("%#04o", otherwise&0o7777)
}

func invalidIgnition(message string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, reasonInvalidIgnition, "the Ignition configuration cannot be used: "+message, args...)
}
