package render

import (
	"strings"

	"github.com/flatcar/ignition/config/v2_3/types"
)

// addUsers adds the users of spec.users to an Ignition configuration. [ignitionConfig] calls it, and then addNTP.
func addUsers(config *types.Config, p Payload) error {
	for _, u := range p.Users {
		if u.Inactive != nil && *u.Inactive {
			return ignitionInvalid("an inactive user (%s) is not supported with the format ignition; leave it out", u.Name)
		}
		user := types.PasswdUser{
			Name: u.Name, Gecos: u.Gecos, HomeDir: u.HomeDir, Shell: u.Shell, PrimaryGroup: u.PrimaryGroup,
		}
		if locked := u.LockPassword != nil && *u.LockPassword; u.Passwd != "" && !locked {
			user.PasswordHash = &u.Passwd
		}
		for group := range strings.SplitSeq(u.Groups, ",") {
			if group = strings.TrimSpace(group); group != "" {
				user.Groups = append(user.Groups, types.Group(group))
			}
		}
		for _, key := range u.SSHAuthorizedKeys {
			user.SSHAuthorizedKeys = append(user.SSHAuthorizedKeys, types.SSHAuthorizedKey(key))
		}
		config.Passwd.Users = append(config.Passwd.Users, user)
		if err := addSudo(config, u.Name, u.Sudo); err != nil {
			return err
		}
	}
	return nil
}

// addSudo writes the sudo rule of a user. Dots in the file name are replaced, because sudo ignores files with dots in
// their names.
func addSudo(config *types.Config, user, rule string) error {
	if rule == "" {
		return nil
	}
	name := strings.ReplaceAll(user, ".", "_")
	if strings.ContainsAny(name, "/\x00") || strings.ContainsAny(user+rule, "\n") {
		return ignitionInvalid("user %q has a name or a sudo rule that cannot be written into /etc/sudoers.d; correct it", user)
	}
	file, err := fileOf(File{
		Path: "/etc/sudoers.d/" + name, Owner: "root:root", Permissions: "0600", Content: []byte(user + " " + rule + "\n"),
	})
	config.Storage.Files = append(config.Storage.Files, file)
	return err
}

// addNTP configures ntpd if the user specifies servers, and enables it. [ignitionConfig] calls it.
func addNTP(config *types.Config, p Payload) error {
	if !p.NTP.IsDefined() || p.NTP.Enabled != nil && !*p.NTP.Enabled {
		return nil
	}
	config.Systemd.Units = append(config.Systemd.Units, types.Unit{Name: "ntpd.service", Enabled: new(true)})
	if len(p.NTP.Servers) == 0 {
		return nil
	}
	var b strings.Builder
	for _, server := range p.NTP.Servers {
		if strings.ContainsAny(server, " \t\r\n") {
			return ignitionInvalid("NTP server %q is not one host name or address; correct it", server)
		}
		b.WriteString("server " + server + "\n")
	}
	b.WriteString("restrict default nomodify nopeer noquery limited kod\nrestrict 127.0.0.1\nrestrict [::1]\n")
	file, err := fileOf(File{Path: "/etc/ntp.conf", Owner: "root:root", Content: []byte(b.String())})
	config.Storage.Files = append(config.Storage.Files, file)
	return err
}
