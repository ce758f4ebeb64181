package redact

import (
	"regexp"
	"strings"
)

const (
	// secretName matches the end of a name that stands for a secret: DB_PASSWORD, clientSecret, x-api-key, PASSWORD_2.
	// It does not match names that merely contain such a word: tokens, token-ttl, AWS_ACCESS_KEY_ID.
	secretName = `(?i:(?:password|passwd|passphrase|passcode|pgpass|pwd|psk|secret|token|credentials?|cookie|signature|` +
		`(?:api|access|private|encryption|certificate|secret|account|shared)[_-]?key)[_-]?\d*|\b(?:pass|auth|sig)|[_-](?:pass|auth|sig))`
	// closingQuote matches the end of a quoted name, also inside a string.
	closingQuote = `\\?["']?`
	// quotedValue matches a quoted value, also inside a string and with the closing quote missing.
	quotedValue = `"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|\\"(?:[^"\\\n]|\\[^"\n])*\\?"?`
	// assignment matches the assignment between a name and its value in a program or a configuration. `NAME= command` in
	// a shell assigns an empty value, so without a space before the operator none may follow it.
	assignment = `(?:[ \t]+:?=[=>]?[ \t]*|:?=[=>]?)`
	// headerName matches the start of an authorization header, up to the credentials.
	headerName = `(?i:\bauthorization)` + closingQuote + `[ \t]*[:=][ \t]*["']?`
)

// forms match secrets in logs and in the data of machines. [Tail] masks what they match, and [FindNamedSecrets] returns
// it. The first group of an expression precedes the secret and the second follows it; both are preserved. An expression
// must run in linear time, because an attacker can choose the text.
var forms = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`(?m:^[A-Za-z0-9+/]{60,}={0,2}$)`), // a line of a key whose beginning was cut off
	regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+\.[\w-]*`),     // a JSON web token
	regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`),   // a bootstrap token
	// Tokens of services that publish the prefix of their tokens.
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|sk_live_|npm_|dop_v1_|hvs\.|AIza)[\w.-]{10,}`),
	// Passwords on the command line of programs that take them after a one-letter option, with or without a space.
	regexp.MustCompile(`((?m:\b(?:mysql\w*|mariadb\w*|sshpass|mongo\w*|redis-cli|ldap\w+|smbclient|htpasswd)\b[^\n|;&]*?[ \t]-[paw][ \t]*))(?:[^\s\-a]|a[^s])\S*`),
	regexp.MustCompile(`((?m:\b(?:docker|podman|nerdctl|crictl|helm|az|oc|skopeo|buildah)\b[^\n|;&]*?[ \t]-p[ \t]*))[^\s-]\S*`),
	regexp.MustCompile(`((?m:\b(?:curl|wget|http|https)\b[^\n|;&]*?[ \t](?:-[uU]|--user|--proxy-user)[ \t=]*["']?[^\s:"']+:))[^\s"']+`),
	regexp.MustCompile(`\$(?:1|2[aby]|5|6|7|y|gy)\$[\w./$,=+-]{8,}`), // a password hash
	regexp.MustCompile(`((?i:\b[a-z][a-z0-9+.-]*)://(?:[^\s/"'@?:]*:)?)[^\s/"'@?]+(?:@[^\s/"'@?]+)*(@)`),
	regexp.MustCompile(`(` + headerName + `(?i:digest|aws4-hmac-sha256)[ \t]+)[^'\n]+`),
	regexp.MustCompile(`(` + headerName + `(?:(?i:basic|bearer|negotiate|token|digest|aws4-hmac-sha256)[ \t]+)?)[^\s"']+`),
	regexp.MustCompile(`(?m:((?i:\bcookie:[ \t]*))[^"'\n]+)`),
	regexp.MustCompile(`(\b(?i:bearer)[ \t]+)[\w.~+/=-]{16,}`),
	regexp.MustCompile(`(` + secretName + closingQuote + assignment + `)(?:` + quotedValue + `|[^\s"'\\]\S*)`),
	// A path before a colon is excluded, because it is usually the file that an error message is about.
	regexp.MustCompile(`(?m:((?:^|[^\w./-])[\w.-]*` + secretName + closingQuote + `[ \t]*:[ \t]*)(?:` + quotedValue + `|[^\s"'\\=]\S*))`),
	regexp.MustCompile(`(?m:((?:^|[\s"'\[=,(])--?[\w.-]*` + secretName + closingQuote + `(?:,[ \t]*|[ \t]+))(?:` + quotedValue + `|[^\s"'\\-]\S*))`),
}

// certificateKey matches the key that encrypts the certificates of a control plane. The same digits after publicHash
// are the hash of a public key, an image or a file, which is not secret.
var certificateKey = regexp.MustCompile(`(?:\bsha256:)?\b[0-9a-f]{64}\b`)

const publicHash = "sha256:"

// hideKeys masks certificate keys. All masking by form calls it.
func hideKeys(text string) string {
	return certificateKey.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, publicHash) {
			return found
		}
		return mask
	})
}

var endsLikeSecret = regexp.MustCompile(secretName + `$|\.key$`)

// IsSecretName reports whether a name or a file path ends like the name of a secret. Package cloudinit applies it to
// the paths of the files in bootstrap data. Package ui applies it to the fields of the objects that it shows.
func IsSecretName(name string) bool { return endsLikeSecret.MatchString(name) }
