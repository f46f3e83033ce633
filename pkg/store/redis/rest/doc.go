// Package rest reaches a Redis that is served over HTTP, by the REST API that Upstash
// documents for its databases. Some proxies before a Redis speak it, too.
//
// A client of Redis dials by it as if it dialled a server. The connection reads commands
// in the protocol of Redis, sends those that were written together in one request, and
// returns the answers in the protocol of Redis:
//
//	POST /          ["GET", "a"]               {"result": "MQ=="}
//	POST /pipeline  [["GET", "a"], ["TIME"]]   [{"result": "MQ=="}, {"error": "ERR ..."}]
//
// Answers are binary: strings come in base64. Requests are texts, so the arguments of a
// script go in hexadecimal, and the script has to decode them; anything else that is not
// text is an error before it is sent. A request is sent once. When no answer comes, its
// commands may still have been carried out.
package rest
