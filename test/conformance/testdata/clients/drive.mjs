// Asks as the lines of the standard input say, and prints each answer in a line.
import { createInterface } from "node:readline";
import { CheckError, Client } from "../../../../clients/node/check.mjs";

const client = new Client({ url: process.argv[2] });
for await (const line of createInterface({ input: process.stdin })) {
  const { call, queries } = JSON.parse(line);
  try {
    console.log(JSON.stringify(await client[call](...queries)));
  } catch (error) {
    if (!(error instanceof CheckError)) {
      throw error;
    }
    console.log(JSON.stringify({ status: error.status, detail: error.detail }));
  }
}
