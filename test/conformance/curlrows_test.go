package conformance

import "strings"

// A curlTable is commands that are added by families.
type curlTable struct{ rows []command }

// add adds a command that is answered by the app with these statuses.
func (t *curlTable) add(name, args, codes string) *command {
	t.rows = append(t.rows, command{name: name, args: args, codes: codes})
	return &t.rows[len(t.rows)-1]
}

// refused adds a command that a sidecar answers itself.
func (t *curlTable) refused(name, args, codes, instead string) *command {
	c := t.add(name, args, codes)
	c.ours = refusal(instead)
	return c
}

// refusal is an outcome without a request at the app.
func refusal(code string) *instead { return &instead{codes: code} }

// curlCommands are all command lines.
func curlCommands() []command {
	t := new(curlTable)
	t.versions()
	t.uploads()
	t.data()
	t.parts()
	t.paths()
	t.fields()
	t.reuse()
	t.answers()
	t.streams()
	t.redirects()
	return t.rows
}

func (t *curlTable) versions() {
	t.add("a GET", "{url}/a", "200")
	t.add("HTTP/1.0", "--http1.0 {url}/a", "200")
	t.add("HTTP/1.0 twice, kept", "--http1.0 -H 'Connection: keep-alive' {url}/a {url}/b", "200 200")
	t.add("HTTP/1.0 without Host", "--http1.0 -H Host: {url}/a", "200")
	t.add("HTTP/1.0 and an answer in chunks", "--http1.0 {url}/chunks", "200")
	t.add("HTTP/1.0 and a body", "--http1.0 -d hello {url}/a", "200")
	t.add("HTTP/1.0 and a large answer", "--http1.0 {url}/large", "200")
	t.add("HTTP/2 with prior knowledge", "--http2-prior-knowledge {url}/a", "200")
	t.add("HTTP/2 and a HEAD", "--http2-prior-knowledge -I -o /dev/null {url}/file", "200")
	t.add("HTTP/2 and a body", "--http2-prior-knowledge --data-binary @{dir}/5m {url}/a", "200")
	t.add("HTTP/2 and an upload", "--http2-prior-knowledge -T - {url}/a", "200").stdin = "5m"
	t.add("HTTP/2 and a range", "--http2-prior-knowledge -r 10-99 {url}/file", "206")
	t.add("HTTP/2 and trailers", "--http2-prior-knowledge -d hello {url}/trailers", "200")
	t.add("HTTP/2 and early hints", "--http2-prior-knowledge {url}/hints", "103 200")
	t.add("HTTP/2 and a large answer", "--http2-prior-knowledge {url}/large", "200")
	t.add("HTTP/2, no body", "--http2-prior-knowledge {url}/status/204", "204")
	t.add("an upgrade to HTTP/2, which is ignored", "--http2 {url}/a", "200")
	t.add("an upgrade to HTTP/2 with a body", "--http2 -d hello {url}/a", "200")
	t.add("an upgrade to a WebSocket, declined", "-H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' {url}/a {url}/b", "200 200")
	t.add("an upgrade to something else", "-H 'Connection: Upgrade' -H 'Upgrade: foo/2' {url}/a", "200")
	t.add("the protocol of haproxy", "--haproxy-protocol {url}/a", "400").seen = -1
	t.add("TLS to a plain port", "-k https://{to}/a", "").exit = 35
}

func (t *curlTable) uploads() {
	t.add("an upload", "-H Expect: -T {dir}/small {url}/a", "200")
	t.add("an upload of nothing", "-H Expect: -T {dir}/empty {url}/a", "200")
	t.add("an upload that waits for 100", "-H 'Expect: 100-continue' -T {dir}/small {url}/a", "100 200")
	t.add("a large upload that waits for 100", "--expect100-timeout 15 -H 'Expect: 100-continue' -T {dir}/5m {url}/a", "100 200")
	t.add("an upload that is refused before its body", "--expect100-timeout 15 -H 'Expect: 100-continue' -T {dir}/5m {url}/early", "413")
	t.add("a request behind such a refusal", "--expect100-timeout 15 -H 'Expect: 100-continue' -T {dir}/small {url}/early --next {url}/a", "413 200")
	t.add("an upload to an app that ignores Expect", "--expect100-timeout 0.1 -H 'Expect: 100-continue' -T {dir}/small {url}/ignore", "200")
	t.add("a large upload to an app that ignores Expect", "--expect100-timeout 0.1 -H 'Expect: 100-continue' -T {dir}/5m {url}/ignore", "200")
	t.add("an upload without Expect", "-H Expect: -T {dir}/5m {url}/a", "200")
	t.refused("an unknown Expect", "-H 'Expect: 200-ok' -d hello {url}/a", "417", "417").seen = -1
	t.add("an upload in chunks", "-H Expect: -T - {url}/a", "200").stdin = "small"
	t.add("a large upload in chunks", "-H Expect: -T - {url}/a", "200").stdin = "5m"
	t.add("chunks that wait for 100", "--expect100-timeout 15 -H 'Expect: 100-continue' -T - {url}/a", "100 200").stdin = "5m"
	t.add("an upload of nothing in chunks", "-H Expect: -T - {url}/a", "200").stdin = "empty"
	t.add("an upload that goes on", "-H Expect: -C 100 -T {dir}/small {url}/a", "200")
	t.add("an upload in a slow way", "-H Expect: --limit-rate 40k -T {dir}/small {url}/a", "200")
	t.add("an answer before the body", "-H Expect: -T {dir}/5m {url}/hasty", "200")
	t.add("an upload by POST", "-H Expect: -X POST -T {dir}/1m {url}/a", "200")
}

func (t *curlTable) data() {
	t.add("a form of nothing", "-d '' {url}/a", "200")
	t.add("a file of nothing", "-d @{dir}/empty {url}/a", "200")
	t.add("a MiB", "-H Expect: --data-binary @{dir}/1m {url}/a", "200")
	t.add("5 MiB", "--expect100-timeout 15 -H 'Expect: 100-continue' --data-binary @{dir}/5m {url}/a", "100 200")
	t.add("a file without its ends of lines", "-d @{dir}/small {url}/a", "200")
	t.add("data in chunks", "-H 'Transfer-Encoding: chunked' -d @{dir}/small {url}/a", "200")
	t.add("data of stdin", "--data-binary @- {url}/a", "200").stdin = "small"
	t.add("JSON", `--json {"a":1} {url}/a`, "200")
	t.add("data in the query", "-G -d a=b --data-urlencode 'q=a b&c' {url}/a", "200")
	for _, method := range []string{"PATCH", "DELETE", "GET", "OPTIONS", "PROPFIND", "QUERY", "X!#$%&*+-.^_`|~", "get"} {
		t.add(method+" with a body", "-X "+method+" --data-raw hello {url}/a", "200")
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "TRACE", "M-SEARCH", "PURGE", "BREW"} {
		t.add(method+" without a body", "-X "+method+" {url}/a", "200")
	}
	t.add("a PUT of length 0", "-X PUT -H 'Content-Length: 0' {url}/a", "200")
	t.add("OPTIONS of everything", "-X OPTIONS --request-target * {url}", "200")
	t.refused("CONNECT", "-X CONNECT --request-target a:80 {url}", "200", "501")
	t.add("a form", "-F a=b -F f=@{dir}/small {url}/form", "200")
	t.add("a large form that waits", "--expect100-timeout 15 -H 'Expect: 100-continue' -F f=@{dir}/5m -F 'g=@{dir}/1m;filename=h' {url}/form", "100 200")
	t.add("a form in chunks", "-F f=@- {url}/form", "200").stdin = "small"
	t.refused("a length beside chunks", "-H 'Transfer-Encoding: chunked' -H 'Content-Length: 5' -d hello {url}/a", "200", "400")
	t.refused("a coding that nobody knows", "-H 'Transfer-Encoding: foo' -d hello {url}/a", "501", "400").seen = -1
}

func (t *curlTable) parts() {
	t.add("an answer to HEAD", "-I -o /dev/null {url}/file", "200")
	t.add("an answer in chunks to HEAD", "-I -o /dev/null {url}/chunks", "200")
	t.add("compressed", "--compressed {url}/gzip", "200")
	t.add("compressed, left so", "-H 'Accept-Encoding: gzip' {url}/gzip", "200")
	t.add("compressed by a coding of the transfer, which nobody does", "--tr-encoding {url}/file", "200")
	for _, part := range []string{"0-0", "0-99", "50000-", "-50"} {
		t.add("range "+part, "-r "+part+" {url}/file", "206")
	}
	t.add("a range behind the end", "-r 200000- {url}/file", "416")
	t.add("the rest of a file", "-C 500 {url}/file", "206")
	t.add("the rest of a file that is here in part", "-C - -o {dir}/partial {url}/file", "206")
	t.add("a file that has not changed since", "-z 'Fri, 02 Jan 2026 00:00:00 GMT' {url}/file", "304")
	t.add("a file of that tag", `-H 'If-None-Match: "v1"' {url}/file {url}/file`, "304 304")
	t.add("a range if it is of that tag", `-r 0-9 -H 'If-Range: "v2"' {url}/file`, "200")
}

func (t *curlTable) paths() {
	for _, path := range []string{
		"/a/../b", "/./x/.", "/..", "/a%2Fb", "/a%2fb/%2e%2e", "//x//y", "/a;b=c", "/{a}|[b]", "/caf%C3%A9", "/café", "/%00", "/?a=b?c=d&e", "/a?", "/?", "/a?x=%zz", "/'", "/*", "/a:b@c", "/" + strings.Repeat("a", 8000),
	} {
		t.add("path "+path[:min(len(path), 20)], "-g --path-as-is {url}"+path, "200")
	}
	t.add("a path with a fragment, which stays here", "{url}/a#b", "200")
	t.add("an absolute target", "--request-target http://b.example/x?y {url}", "200")
	t.add("an absolute target of another scheme", "--request-target https://b.example:8443/x {url}", "200")
	t.add("as a proxy", "-x http://{to} http://b.example/x?y", "200")
	t.add("as a proxy, a POST", "-x http://{to} -d hello http://b.example:81/x", "200")
	t.add("as a proxy with a password", "-x http://u:p@{to} http://b.example/", "200")
	t.add("a target that is not one", "--request-target x {url}", "400").seen = -1
	t.add("another host", "-H 'Host: b.example:81' {url}/a", "200")
	t.refused("no host", "-H Host: {url}/a", "400", "400").seen = -1
	t.add("an empty host", "-H Host; {url}/a", "200")
	t.add("a name and a password", "-u a:b {url}/a", "200")
}

func (t *curlTable) fields() {
	for _, field := range []string{
		"X;", "X: ", "X: a  b", "x-LOWER: a", "X_Under: a", "X-Weir-Tenant: gold", "X-Forwarded-For: 192.0.2.1", "Pragma: no-cache", "User-Agent;", "User-Agent:", "Accept:", "TE: trailers", "Keep-Alive: timeout=5", "Max-Forwards: 0", "Via: 1.1 a",
		"X: café", "Trailer: X", "Referer: http://a/b", "Date: Thu, 01 Jan 1970 00:00:00 GMT", "Forwarded: for=a;by=b", "X: \"quoted, text\"",
	} {
		t.add("field "+field, "-H '"+field+"' {url}/a", "200")
	}
	t.add("a field twice", "-H 'X: a' -H 'x: b' -H 'X;' {url}/a", "200")
	t.add("a hop before, twice", "-H 'X-Forwarded-For: 192.0.2.1' -H 'X-Forwarded-For: 192.0.2.2' {url}/a", "200")
	t.add("a field of 30,000 bytes", "-H @{dir}/field {url}/a {url}/b", "200 200")
	t.add("300 fields of 100 bytes", "-H @{dir}/fields {url}/a", "200")
	t.refused("a field above 36 KiB", "-H @{dir}/long {url}/a", "200", "431")
	t.refused("fields above 36 KiB", "-H @{dir}/many {url}/a", "200", "431")
	t.refused("a path above 36 KiB", "{url}/"+strings.Repeat("a", 37<<10), "200", "431")
	t.refused("a field of the connection that is the app's", "-H 'Connection: X-User' -H 'X-User: a' {url}/a", "200", "400")
	t.add("cookies", "-b 'a=b; c=d' {url}/a", "200")
	t.add("cookies that the app sets", "-b '' {url}/cookie {url}/a", "200 200")
	t.add("cookies of HTTP/2", "--http2-prior-knowledge -b 'a=b; c=d' {url}/a", "200")
}

func (t *curlTable) reuse() {
	t.add("three on a connection", "{url}/a {url}/file {url}/b", "200 200 200")
	t.add("methods on a connection", "-d hello {url}/a --next -I -o /dev/null {url}/file --next -X DELETE {url}/a --next -H Expect: -T {dir}/small {url}/b", "200 200 200 200")
	t.add("behind errors", "{url}/status/404 {url}/status/500 {url}/status/503 {url}/a", "404 500 503 200")
	t.add("behind answers without a body", "{url}/status/204 {url}/status/304 {url}/status/204 {url}/a", "204 304 204 200")
	t.add("behind a HEAD", "-I -o /dev/null {url}/large --next {url}/a", "200 200")
	t.add("behind a range", "-r 0-9 {url}/file --next {url}/a", "206 200")
	t.add("behind chunks", "{url}/chunks {url}/trailers {url}/a", "200 200 200")
	t.add("behind a small body that the app leaves unread", "-d hello {url}/early --next {url}/a", "413 200")
	t.add("behind a body in chunks", "-H Expect: -T - {url}/a --next {url}/b", "200 200").stdin = "small"
	t.add("a connection for each", "-H 'Connection: close' {url}/a {url}/b", "200 200")
	t.add("without TCP keepalives", "--no-keepalive {url}/a {url}/b", "200 200")
	t.add("at the same time", "-Z --parallel-max 3 {url}/same/a {url}/same/a {url}/same/a {url}/same/a {url}/same/a {url}/same/a", "200 200 200 200 200 200").unordered = true
}

func (t *curlTable) answers() {
	for _, code := range []string{"200", "201", "202", "206", "299", "400", "404", "405", "409", "410", "429", "451", "500", "502", "503", "504", "599"} {
		t.add("status "+code, "{url}/status/"+code, code)
	}
	t.add("status 204", "{url}/status/204", "204")
	t.add("status 205", "{url}/status/205", "205")
	t.add("status 304", "{url}/status/304", "304")
	t.add("an error as the exit code", "-f {url}/status/404", "404").exit = 22
	t.add("an error as the exit code with its body", "--fail-with-body {url}/status/500", "500").exit = 22
	t.add("early hints", "{url}/hints {url}/a", "103 200 200")
	t.add("informational answers", "{url}/raw/two-words", "100 102 200").seen = 1
	t.add("trailers", "{url}/trailers", "200")
	t.add("the extensions of chunks", "{url}/raw/extensions", "200")
	t.add("an answer until the connection is closed", "{url}/raw/until-closed", "200")
	t.add("an answer of HTTP/1.0", "{url}/raw/1.0", "200")
	t.add("another reason", "{url}/raw/reason", "299")
	t.add("no reason", "{url}/raw/no-reason", "200")
	t.add("a length that is not reached", "{url}/raw/cut-length", "200").exit = 18
	t.add("chunks without an end", "{url}/raw/cut-chunks", "200").exit = 18
	t.add("a chunk without an end", "{url}/raw/cut-chunk", "200").exit = 18
	for _, c := range []struct {
		path, codes string
		exit        int
	}{{"nothing", "", 52}, {"http09", "", 1}, {"no-length", "200", 8}} {
		t.refused("broken: "+c.path, "{url}/raw/"+c.path, c.codes, "502").broken(c.exit)
	}
	t.refused("an answer of HTTP/0.9", "--http0.9 {url}/raw/http09", "", "502").broken(0)
	t.add("a large answer", "{url}/large", "200")
	t.add("an answer in a slow way", "--limit-rate 300k {url}/file", "200")
	t.add("an answer that is asked for by name and password", "--anyauth -u a:b {url}/auth", "401 200")
	t.add("the same with a body", "--anyauth -u a:b -d hello {url}/auth", "401 200")
}

// broken says that the app gets a request, and answers it so that curl ends with that code.
func (c *command) broken(exit int) {
	c.exit, c.seen, c.ours.seen = exit, 1, 1
}

func (t *curlTable) streams() {
	t.add("each part of an answer", "-N {url}/steps", "200")
	t.add("each part of an answer of HTTP/2", "-N --http2-prior-knowledge {url}/steps", "200")
	t.add("each part of a body", "-H Expect: -N -T - {url}/takes", "200").stdin = whenRead
	t.add("each part of a body of HTTP/2", "-N --http2-prior-knowledge -T - {url}/takes", "200").stdin = whenRead
	t.leaves("in the middle of an answer", "--max-time 1 {url}/hang", "200")
	t.leaves("in the middle of an answer of HTTP/2", "--max-time 1 --http2-prior-knowledge {url}/hang", "200")
	t.leaves("before an answer of HTTP/2", "--max-time 1 --http2-prior-knowledge {url}/silent", "").seen = 1
	t.leaves("in the middle of a body", "--max-time 1 --limit-rate 100k -H Expect: -T {dir}/5m {url}/a", "").seen = 1
	t.leaves("in the middle of a body of HTTP/2", "--max-time 1 --limit-rate 100k --http2-prior-knowledge -T {dir}/5m {url}/a", "").seen = 1
	t.add("a file that is too large", "--max-filesize 1000 {url}/file", "200").exit = 63
}

// leaves adds a command that gives up.
func (t *curlTable) leaves(name, args, codes string) *command {
	c := t.add("leaves "+name, args, codes)
	c.exit, c.aborts = 28, true
	return c
}

func (t *curlTable) redirects() {
	t.add("follows 302", "-L {url}/redirect/302", "302 200")
	t.add("follows 303 behind a POST", "-L -d hello {url}/redirect/303", "303 200")
	t.add("follows 301 with the POST", "-L --post301 -d hello {url}/redirect/301", "301 200")
	t.add("follows 307 with the body", "-L -d hello {url}/redirect/307", "307 200")
	t.add("follows 308 with the body", "-L -d hello {url}/redirect/308", "308 200")
	t.add("follows 307 with an upload", "-L --expect100-timeout 15 -H 'Expect: 100-continue' -T {dir}/5m {url}/redirect/307", "307 100 200")
	t.add("follows 308 with another method", "-L -X PATCH -d hello {url}/redirect/308", "308 200")
	t.add("follows no more than three", "-L --max-redirs 3 {url}/redirect/again", "302 302 302 302").exit = 47
	t.add("does not follow", "{url}/redirect/302", "302")
}
