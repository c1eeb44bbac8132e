package differential

import "strings"

// monitored begins the keys whose commands are compared when a connection monitors the server: the
// proxy's own commands on its connections have none.
const monitored = "seen:"

// isOverheard tells a line of MONITOR, which begins with the time of day, from a reply.
func isOverheard(frame string) bool {
	at := strings.IndexByte(frame, ' ')
	return at > 2 && frame[0] == '+' && strings.Trim(frame[1:at], "0123456789.") == "" &&
		strings.HasPrefix(frame[at:], " [") && strings.Contains(frame[at:], `] "`)
}

// overheard returns a line of MONITOR without the time and the address, "" for one that is not compared.
func overheard(frame string) string {
	if !strings.Contains(frame, `"`+monitored) {
		return ""
	}
	_, rest, _ := strings.Cut(frame, " [")
	who, what, _ := strings.Cut(rest, "] ")
	db, from, _ := strings.Cut(who, " ")
	if from != "lua" {
		from = "client"
	}
	return "+[" + db + " " + from + "] " + what
}
