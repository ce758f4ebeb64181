package cloudinit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/ptr"
)

// sudoersFile is cloud-init's file for the sudo rules of the users it creates.
const sudoersFile = "/etc/sudoers.d/90-cloud-init-users"

// userItem is an item of the section users, with cloud-init's fields. changes.go also lists the users and their home
// directories from it.
type userItem struct {
	Name         string     `yaml:"name"`
	Gecos        string     `yaml:"gecos"`
	Groups       stringList `yaml:"groups"`
	HomeDir      string     `yaml:"homedir"`
	Inactive     string     `yaml:"inactive"`
	Shell        string     `yaml:"shell"`
	Passwd       string     `yaml:"passwd"`
	HashedPasswd string     `yaml:"hashed_passwd"`
	PrimaryGroup string     `yaml:"primary_group"`
	LockPasswd   *bool      `yaml:"lock_passwd"`
	NoCreateHome bool       `yaml:"no_create_home"`
	System       bool       `yaml:"system"`
	UID          string     `yaml:"uid"`
	Sudo         yaml.Node  `yaml:"sudo"`
	SSHKeys      stringList `yaml:"ssh_authorized_keys"`
}

// stringList is a list that may be written as one comma-separated string.
type stringList []string

func (w *stringList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = nil
		for _, word := range strings.Split(n.Value, ",") {
			if word = strings.TrimSpace(word); word != "" && !isNull(n) {
				*w = append(*w, word)
			}
		}
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return err
	}
	*w = list
	return nil
}

// readUsers returns the steps of the section users and the names of its unsupported items. assemble calls it for
// [parse].
func readUsers(s section) ([]step, []string, error) {
	users, skipped, err := parseUsers(s)
	if err != nil {
		return nil, nil, err
	}
	var steps []step
	for _, user := range users {
		rules, err := user.sudoRules()
		if err != nil {
			return nil, nil, invalidFault("user %s in users cannot be used", user.Name).From(err)
		}
		steps = append(steps, step{Section: s.name, Script: &script{Text: user.script()}})
		if len(rules) > 0 {
			steps = append(steps, step{Section: s.name, File: sudoers(rules)})
		}
	}
	return steps, skipped, nil
}

func parseUsers(s section) (users []userItem, skipped []string, err error) {
	items, err := listOf(s.name, s.value)
	if err != nil {
		return nil, nil, err
	}
	for i, node := range items {
		if node.Kind == yaml.ScalarNode && node.Value == "default" {
			skipped = append(skipped, "users.default")
			continue
		}
		var user userItem
		if node.Kind == yaml.ScalarNode {
			user.Name = node.Value
		} else if err := node.Decode(&user); err != nil {
			return nil, nil, invalidFault("users[%d] cannot be read", i).From(err)
		}
		if user.Name == "" {
			return nil, nil, invalidFault("users[%d] has no name", i)
		}
		if strings.ContainsAny(user.Passwd+user.HashedPasswd, ":\n\r") {
			return nil, nil, invalidFault("the password hash of users[%d] contains a colon or a line break", i)
		}
		users = append(users, user)
	}
	return users, skipped, nil
}

// script creates the user if it does not exist, and then sets the password, expiry and SSH keys.
func (u userItem) script() string {
	var b strings.Builder
	name := quote(u.Name)
	for _, group := range append(slices.Clone(u.Groups), u.PrimaryGroup) {
		if group != "" {
			fmt.Fprintf(&b, "getent group %[1]s >/dev/null || groupadd %[1]s\n", quote(group))
		}
	}
	create := "useradd " + strings.Join(u.flags(), " ")
	if hash := cmp.Or(u.HashedPasswd, u.Passwd); hash != "" {
		// All users can read the arguments of programs.
		create = fmt.Sprintf(`{ %s && printf '%%s:%%s\n' %s %s | chpasswd -e; }`, create, name, quote(hash))
	}
	fmt.Fprintf(&b, "id -u %s >/dev/null 2>&1 || %s\n", name, create)
	if ptr.Deref(u.LockPasswd, true) {
		fmt.Fprintf(&b, "passwd -l %s >/dev/null\n", name)
	}
	if u.inactive() {
		fmt.Fprintf(&b, "usermod --expiredate 1 %s\n", name)
	}
	if len(u.SSHKeys) > 0 {
		b.WriteString(u.keyScript())
	}
	return b.String()
}

// flags returns the arguments of useradd.
func (u userItem) flags() []string {
	var out []string
	add := func(flag, value string) {
		if value != "" {
			out = append(out, flag, quote(value))
		}
	}
	add("--comment", u.Gecos)
	add("--groups", strings.Join(u.Groups, ","))
	add("--home-dir", u.HomeDir)
	add("--shell", u.Shell)
	add("--gid", u.PrimaryGroup)
	add("--uid", u.UID)
	switch {
	case u.System:
		out = append(out, "--system")
	case u.NoCreateHome:
		out = append(out, "--no-create-home")
	default:
		out = append(out, "--create-home")
	}
	return append(out, quote(u.Name))
}

// inactive reports whether login is disabled for the user.
func (u userItem) inactive() bool {
	return u.Inactive != "" && !strings.EqualFold(u.Inactive, "false")
}

// keyScript adds the public keys to the authorized_keys file in the home directory from the passwd database.
func (u userItem) keyScript() string {
	name := quote(u.Name)
	var b strings.Builder
	fmt.Fprintf(&b, "home=$(getent passwd %s | cut -d: -f6)\n", name)
	b.WriteString(`mkdir -p "$home/.ssh" && chmod 0700 "$home/.ssh"` + "\n")
	for _, key := range u.SSHKeys {
		fmt.Fprintf(&b, `printf '%%s\n' %s >>"$home/.ssh/authorized_keys"`+"\n", quote(strings.TrimSpace(key)))
	}
	b.WriteString(`chmod 0600 "$home/.ssh/authorized_keys"` + "\n")
	fmt.Fprintf(&b, `chown -R %[1]s:"$(id -gn %[1]s)" "$home/.ssh"`+"\n", name)
	return b.String()
}

// sudoRules returns the sudoers lines of the user. The sudo field may be a string, a list, or false for none.
func (u userItem) sudoRules() ([]string, error) {
	n := &u.Sudo
	if n.Kind == 0 || isNull(n) || n.Tag == "!!bool" {
		return nil, nil
	}
	rules := []string{n.Value}
	if n.Kind != yaml.ScalarNode {
		if err := n.Decode(&rules); err != nil {
			return nil, fmt.Errorf("sudo must be a rule or a list of rules: %w", err)
		}
	}
	out := make([]string, 0, len(rules))
	for _, rule := range rules {
		if strings.ContainsAny(rule, "\n\r") {
			return nil, fmt.Errorf("a sudo rule must be one line")
		}
		out = append(out, u.Name+" "+rule)
	}
	return out, nil
}

func sudoers(rules []string) *file {
	return &file{
		Path: sudoersFile, Content: []byte(strings.Join(rules, "\n") + "\n"),
		Owner: "root", Group: "root", Mode: 0o440, Append: true,
	}
}
