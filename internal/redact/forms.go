package redact

import (
	"regexp"
	"strings"
)

const (
	// secretName is how the names of secrets end: DB_PASSWORD, clientSecret, x-api-key, PASSWORD_2. A name that only has such a word in it is
	// that of something else: tokens, token-ttl, AWS_ACCESS_KEY_ID.
	secretName = `(?i:(?:password|passwd|passphrase|passcode|pgpass|pwd|psk|secret|token|credentials?|cookie|signature|` +
		`(?:api|access|private|encryption|certificate|secret|account|shared)[_-]?key)[_-]?\d*|\b(?:pass|auth|sig)|[_-](?:pass|auth|sig))`
	// closed is the end of a name in quotes, also within a string.
	closed = `\\?["']?`
	// quoted is a value in quotes, also within a string and where they are not closed.
	quoted = `"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|\\"(?:[^"\\\n]|\\[^"\n])*\\?"?`
	// equals is between a name and its value in a program or a configuration. An empty value of a shell's variable is none.
	equals = `(?:[ \t]+:?=[=>]?[ \t]*|:?=[=>]?)`
	// headerName is before the credentials of a request.
	headerName = `(?i:\bauthorization)` + closed + `[ \t]*[:=][ \t]*["']?`
)

// forms are what must not be shown. The first group of an expression comes before the secret, the second after it; both stay.
var forms = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`(?m:^[A-Za-z0-9+/]{60,}={0,2}$)`), // of a key, where the log was cut off
	regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+\.[\w-]*`),     // a JSON web token
	regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`),   // a bootstrap token
	// Tokens of services that publish what theirs begin with.
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|sk_live_|npm_|dop_v1_|hvs\.|AIza)[\w.-]{10,}`),
	// The password of programs that take it after a letter, with or without a space.
	regexp.MustCompile(`((?m:\b(?:mysql\w*|mariadb\w*|sshpass|mongo\w*|redis-cli|ldap\w+|smbclient|htpasswd)\b[^\n|;&]*?[ \t]-[paw][ \t]*))(?:[^\s\-a]|a[^s])\S*`),
	regexp.MustCompile(`((?m:\b(?:docker|podman|nerdctl|crictl|helm|az|oc|skopeo|buildah)\b[^\n|;&]*?[ \t]-p[ \t]*))[^\s-]\S*`),
	regexp.MustCompile(`((?m:\b(?:curl|wget|http|https)\b[^\n|;&]*?[ \t](?:-[uU]|--user|--proxy-user)[ \t=]*["']?[^\s:"']+:))[^\s"']+`),
	regexp.MustCompile(`\$(?:1|2[aby]|5|6|7|y|gy)\$[\w./$,=+-]{8,}`), // the hash of a password
	regexp.MustCompile(`((?i:\b[a-z][a-z0-9+.-]*)://(?:[^\s/"'@?:]*:)?)[^\s/"'@?]+(?:@[^\s/"'@?]+)*(@)`),
	regexp.MustCompile(`(` + headerName + `(?i:digest|aws4-hmac-sha256)[ \t]+)[^'\n]+`),
	regexp.MustCompile(`(` + headerName + `(?:(?i:basic|bearer|negotiate|token|digest|aws4-hmac-sha256)[ \t]+)?)[^\s"']+`),
	regexp.MustCompile(`(?m:((?i:\bcookie:[ \t]*))[^"'\n]+)`),
	regexp.MustCompile(`(\b(?i:bearer)[ \t]+)[\w.~+/=-]{16,}`),
	regexp.MustCompile(`(` + secretName + closed + equals + `)(?:` + quoted + `|[^\s"'\\]\S*)`),
	// Before a colon, a path is a file that something is said of.
	regexp.MustCompile(`(?m:((?:^|[^\w./-])[\w.-]*` + secretName + closed + `[ \t]*:[ \t]*)(?:` + quoted + `|[^\s"'\\=]\S*))`),
	regexp.MustCompile(`(?m:((?:^|[\s"'\[=,(])--?[\w.-]*` + secretName + closed + `(?:,[ \t]*|[ \t]+))(?:` + quoted + `|[^\s"'\\-]\S*))`),
}

// certificateKey is the key that certificates of a control plane are encrypted with. The same digits after publicHash are the hash of a public
// key, an image or a file, which is no secret.
var certificateKey = regexp.MustCompile(`(?:\bsha256:)?\b[0-9a-f]{64}\b`)

const publicHash = "sha256:"

// hideKeys masks certificate keys.
func hideKeys(text string) string {
	return certificateKey.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, publicHash) {
			return found
		}
		return mask
	})
}

var endsLikeSecret = regexp.MustCompile(secretName + `$|\.key$`)

// IsNamed reports whether a name, or the path of a file, ends like that of a secret.
func IsNamed(name string) bool { return endsLikeSecret.MatchString(name) }
