package redact

import "regexp"

const (
	// secretName is how the names of secrets end: DB_PASSWORD, clientSecret, x-api-key, PASSWORD_2. A name that only has such a word in it is
	// that of something else: tokens, token-ttl, AWS_ACCESS_KEY_ID.
	secretName = `(?i:(?:password|passwd|passphrase|pwd|secret|token|credentials?|cookie|` +
		`(?:api|access|private|encryption|certificate|secret|account|shared)[_-]?key)[_-]?\d*)`
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
	regexp.MustCompile(`(?m:^[A-Za-z0-9+/]{60,}={0,2}$)`),            // of a key, where the log was cut off
	regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+\.[\w-]*`),                // a JSON web token
	regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`),              // a bootstrap token
	regexp.MustCompile(`\b[0-9a-f]{64}\b`),                           // a certificate key
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

var endsLikeSecret = regexp.MustCompile(secretName + `$|\.key$`)

// IsNamed reports whether a name, or the path of a file, ends like that of a secret.
func IsNamed(name string) bool { return endsLikeSecret.MatchString(name) }
